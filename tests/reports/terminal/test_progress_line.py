"""How far a long command is."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from slow_terminal import REAL, SlowTerminal

from vcpo_bench.progress import listening, track
from vcpo_bench.reports.terminal.progress_line import ProgressLine


def shown(patience: float, terminal: bool) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None)
    with ProgressLine(console, patience) as line, listening(line):
        for _ in track(range(3), "drawing figures", 3):
            time.sleep(0.15)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_long_command_says_what_it_does_how_far_it_is_and_what_is_left() -> None:
    text = shown(0.0, terminal=True)
    assert "drawing figures" in text
    assert "1/3" in text
    assert "left" in text


def test_a_quick_command_and_a_pipe_show_nothing() -> None:
    assert "figures" not in shown(60.0, terminal=True)
    assert shown(0.0, terminal=False) == ""


def test_without_a_listener_a_loop_is_just_a_loop() -> None:
    assert list(track("abc", "letters", 3)) == ["a", "b", "c"]


def test_every_item_is_reported_when_its_turn_is_over() -> None:
    heard = []

    class Ear:
        def advanced(self, what: str, done: int, total: int) -> None:
            heard.append((what, done, total))

    with listening(Ear()):
        heard.extend(track("ab", "letters", 2))
    assert heard == [("letters", 0, 2), "a", ("letters", 1, 2), "b", ("letters", 2, 2)]


def test_of_nested_loops_the_inner_one_is_shown_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SlowTerminal(monkeypatch, seconds=2.0)
    with REAL(terminal.console) as line, listening(line):
        for _ in track(range(2), "outer", 2):
            for _ in track(range(2), "inner", 2):
                assert [task.description for task in line._shown.tasks if task.visible] == ["inner"]
            assert [task.description for task in line._shown.tasks if task.visible] == ["outer"]
        assert line._shown.tasks == []


def test_a_loop_that_was_left_early_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SlowTerminal(monkeypatch, seconds=2.0)
    with REAL(terminal.console) as line, listening(line):
        assert next(iter(track("ab", "letters", 2))) == "a"
        assert not line._shown.live.is_started
        unfinished = track("ab", "outer", 2), track("ab", "inner", 2)
        for loop in unfinished:
            next(loop)
        next(unfinished[0])
        assert [task.description for task in line._shown.tasks] == ["outer"]


def test_answers_between_loops_are_printed_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SlowTerminal(monkeypatch, seconds=2.0)
    with REAL(terminal.console) as line, listening(line):
        for _ in track("a", "letters", 1):
            assert line._shown.live.is_started
        assert not line._shown.live.is_started
        for _ in track("b", "more letters", 1):
            assert line._shown.live.is_started
    assert "more letters" in terminal.shown


def test_what_a_loop_prints_to_a_file_or_pipe_arrives_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = SlowTerminal(monkeypatch, seconds=2.0)
    with REAL(terminal.console) as line, listening(line):
        for letter in track("ab", "letters", 2):
            print(letter)
    assert capsys.readouterr().out == "a\nb\n"
    assert "letters" in terminal.shown
