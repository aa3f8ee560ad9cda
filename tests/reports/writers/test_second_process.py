"""A second process answers in order; whatever happens to it, every answer is there."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vcpo_bench.progress import listening, track
from vcpo_bench.reports.document import Document
from vcpo_bench.reports.sections.cell_pages import cell_pages
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers import second_process
from vcpo_bench.reports.writers.html import render_document
from vcpo_bench.reports.writers.second_process import beside

ITEMS = [3, 1, 2]
HERE = os.getpid()
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no second process")


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the end no second process is left."""
    made: list[int] = []
    fork = os.fork

    def noted() -> int:
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(os, "fork", noted)
    monkeypatch.setattr(second_process, "welcome", True)
    yield
    for process in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def squared_by(item: int) -> tuple[int, int]:
    return item**2, os.getpid()


def killed_at_1(item: int) -> tuple[int, int]:
    if item == 1 and os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return squared_by(item)


def failing_at_1(item: int) -> tuple[int, int]:
    if item == 1 and os.getpid() != HERE:
        raise MemoryError
    return squared_by(item)


def stuck_at_1(item: int) -> tuple[int, int]:
    if item == 1 and os.getpid() != HERE:
        time.sleep(600)
    return squared_by(item)


def asked(function: Callable[[int], tuple[int, int]]) -> tuple[list[int], list[bool]]:
    """The answers, and which of them another process gave."""
    with beside(function, ITEMS) as ask:
        answers = [ask(item) for item in ITEMS]
    return [answer for answer, _ in answers], [process != HERE for _, process in answers]


def test_another_process_answers_in_order() -> None:
    assert asked(squared_by) == ([9, 1, 4], [True, True, True])


@pytest.mark.parametrize("function", [killed_at_1, failing_at_1, stuck_at_1])
def test_answers_of_a_process_that_ends_or_is_stuck_are_computed_here(
    function: Callable[[int], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if function is stuck_at_1:
        monkeypatch.setattr(second_process, "PATIENCE", 1.0)
    assert asked(function) == ([9, 1, 4], [True, False, False])


def test_without_a_second_processor_there_is_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    assert asked(squared_by) == ([9, 1, 4], [False, False, False])


def test_where_no_process_can_be_made_answers_are_computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    assert asked(squared_by) == ([9, 1, 4], [False, False, False])


def test_it_does_not_outlive_an_error() -> None:
    with pytest.raises(ZeroDivisionError), beside(stuck_at_1, [1]):
        raise ZeroDivisionError


def test_it_says_nothing_of_its_progress(tmp_path: Path) -> None:
    class ToFile:
        def advanced(self, what: str, done: int, total: int) -> None:
            with (tmp_path / "said").open("a") as file:
                file.write(f"{os.getpid()}\n")

    def loop(item: int) -> int:
        return sum(track(range(item), "adding", item))

    with listening(ToFile()), beside(loop, ITEMS) as ask:
        assert [ask(item) for item in ITEMS] == [3, 0, 1]
        loop(1)
    assert set((tmp_path / "said").read_text().split()) == {str(HERE)}


def test_nobody_is_forked_who_did_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "welcome", False)
    assert asked(squared_by) == ([9, 1, 4], [False, False, False])


def test_a_page_drawn_by_two_processes_is_the_same(document: Document, study: Study, page: str) -> None:
    assert render_document(document, cell_pages(study)) == page
