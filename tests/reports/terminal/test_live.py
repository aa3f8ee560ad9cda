"""The views of a running grid, driven by the events bench sends."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from vcpo_bench.progress import GridObserver
from vcpo_bench.reports.formatting import duration
from vcpo_bench.reports.terminal.live import LiveView, PlainView, make_view
from vcpo_bench.reports.terminal.progress import GridProgress

CELLS = [("a", "vcpo lag 16 seed 0"), ("b", "clip lag 16 seed 0"), ("c", "[red]tis[/red] lag 1 seed 0")]


@pytest.fixture(autouse=True)
def _real_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def console(terminal: bool = False, width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=25, color_system=None)


def text_of(target: Console) -> str:
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_counts_add_up_and_only_errors_are_failures() -> None:
    state = GridProgress()
    state.begin([(key, key) for key in "abcdef"], already_done=4)
    for key in "abcd":
        state.started(key, key, 10)
    state.finished("a", "completed", 5.0)
    state.finished("b", "nan", 5.0)
    state.finished("c", "error", 1.0)
    assert (state.total, state.done, state.failed, len(state.running), state.left) == (10, 6, 1, 1, 2)
    assert state.summary(1.0) == "6 of 10 cells done, 1 failed, 1 running, 2 waiting, about 4 s left"


def test_time_left_is_the_mean_cost_of_ended_cells_over_the_workers() -> None:
    state = GridProgress()
    state.begin([(key, key) for key in "abcdef"], already_done=0)
    assert state.seconds_left(0.0) is None
    state.started("a", "a", 100)
    state.started("b", "b", 100)
    assert state.seconds_left(5.0) is None, "nothing has moved yet"
    state.finished("a", "completed", 30.0)
    state.progressed("b", 50, 0.1, 0.9, now=15.0)
    assert state.seconds_left(15.0) == pytest.approx(30.0 * (4 + 0.5) / 2)


def test_before_the_first_end_running_cells_are_extrapolated_from_where_they_were_resumed() -> None:
    state = GridProgress()
    state.begin([("a", "a")], already_done=0)
    state.started("a", "a", 300)
    state.progressed("a", 200, 0.1, 0.9, now=8.0)
    state.progressed("a", 250, 0.1, 0.9, now=10.0)
    assert state.seconds_left(10.0) == pytest.approx(2.0 * 300 / 50 * 50 / 300)


def test_a_cell_that_was_resumed_near_its_end_does_not_make_the_others_look_short() -> None:
    state = GridProgress()
    state.begin([(key, key) for key in "abc"], already_done=0)
    state.started("a", "a", 300)
    state.progressed("a", 250, 0.1, 0.9, now=8.0)
    state.progressed("a", 300, 0.1, 0.9, now=58.0)
    state.finished("a", "completed", 60.0)
    assert state.seconds_left(60.0) == pytest.approx(300.0 * 2)


def test_a_cell_that_ends_early_counts_as_short_as_it_was() -> None:
    state = GridProgress()
    state.begin([(key, key) for key in "ab"], already_done=0)
    state.started("a", "a", 300)
    state.progressed("a", 1, 0.1, 0.9, now=8.0)
    state.progressed("a", 51, 0.1, 0.9, now=58.0)
    state.finished("a", "nan", 60.0)
    assert state.seconds_left(60.0) == pytest.approx(60.0)


@pytest.mark.parametrize(("seconds", "words"), [(8.2, "8 s"), (89, "89 s"), (180, "3 min"), (7500, "2 h 05 min")])
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_plain_view_writes_a_line_per_event_and_the_overall_state_now_and_then() -> None:
    target, clock = console(), Clock()
    view = PlainView(target, clock)
    view.begin(CELLS, already_done=1)
    view.started("a", CELLS[0][1], 300)
    for second in range(25):
        clock.now = float(second)
        view.progress("a", second, 0.5, 0.5)
    view.ended("a", "completed", 25.0, "")
    view.ended("c", "error", 1.0, "ValueError: [bold]bad[/bold]")
    view.close()
    lines = text_of(target).splitlines()
    assert lines[0] == "3 cells to run, 1 already done"
    assert lines[1] == "started   vcpo lag 16 seed 0 (300 updates)"
    assert sum("running" in line for line in lines) == 1, "at second 10; at second 20 there is nothing new"
    assert lines[-3].endswith("in 25 s [2/4]")
    assert "[red]tis[/red]" in lines[-2], "no markup is interpreted"
    assert lines[-2].endswith("ValueError: [bold]bad[/bold]")
    assert lines[-1].startswith("2 of 4 cells done, 1 failed, 1 waiting")


def test_one_cell_is_not_called_cells() -> None:
    target = console()
    PlainView(target).begin(CELLS[:1], already_done=0)
    assert text_of(target).splitlines() == ["1 cell to run"]


def test_live_view_shows_the_running_cells_and_leaves_failures_behind() -> None:
    target, clock = console(terminal=True), Clock()
    view = LiveView(target, clock)
    view.begin(CELLS, already_done=0)
    view.started("a", CELLS[0][1], 300)
    view.progress("a", 150, 0.625, math.nan)
    with target.capture() as captured:
        target.print(view.render())
    screen = captured.get()
    assert "150/300" in screen
    assert "0.62" in screen
    assert " - " in screen, "no ESS yet"
    view.ended("a", "nan", 3.0, "3 updates in a row")
    view.message("a line [for] you")
    view.close()
    final = text_of(target)
    assert "3 updates in a row" in final
    assert "a line [for] you" in final
    assert final.rstrip().endswith("1 of 3 cells done, 2 waiting, about 6 s left")


def test_live_view_fits_a_narrow_terminal() -> None:
    target = console(terminal=True, width=60)
    view = LiveView(target, Clock())
    view.begin(CELLS, already_done=0)
    view.started("a", "x" * 200, 300)
    view.close()
    paper = console(width=60)
    paper.print(view.render())
    assert max(len(line) for line in text_of(paper).splitlines()) <= 60
    assert "0/300" in text_of(paper)


@pytest.mark.parametrize(("width", "barred"), [(80, False), (100, True)])
def test_live_view_shows_bars_where_labels_keep_their_room(width: int, barred: bool) -> None:
    label = "vcpo(variant=released) lag 16 seed 0 walk lr 3e-4"
    paper = console(width=width)
    view = LiveView(paper, Clock())
    view.begin([("a", label)], already_done=0)
    view.started("a", label, 300)
    view.progress("a", 150, 0.5, 0.4)
    view.close()
    paper.print(view.render())
    assert label in text_of(paper)
    assert ("━" in text_of(paper)) == barred


def test_live_view_of_a_stack_leaves_room_for_the_state_of_the_grid() -> None:
    target = console(terminal=True)
    view = LiveView(target, Clock())
    view.begin([(str(number), f"cell {number}") for number in range(128)], already_done=0)
    for number in range(128):
        view.started(str(number), f"cell {number}", 300)
    paper = console()
    paper.print(view.render())
    view.close()
    lines = text_of(paper).splitlines()
    assert len(lines) < 25
    assert lines[-2].split() == ["and", "107", "more"]
    assert lines[-1] == "0 of 128 cells done, 128 running"


def test_live_view_redraws_at_most_a_few_times_per_second() -> None:
    target, clock = console(terminal=True), Clock()
    view = LiveView(target, clock)
    view.begin(CELLS, already_done=0)
    view.started("a", "a", 300)
    clock.now = 0.1
    before = len(text_of(target))
    view.progress("a", 1, 0.5, 0.5)
    assert len(text_of(target)) == before
    clock.now = 0.3
    view.progress("a", 2, 0.5, 0.5)
    assert len(text_of(target)) > before
    view.close()


@pytest.mark.parametrize("kind", [PlainView, LiveView])
def test_a_warning_that_many_cells_give_is_one_line(kind: type[PlainView | LiveView]) -> None:
    target = console(terminal=kind is LiveView)
    view = kind(target)
    for text in ("takes 4 passes", "takes 64 passes", "takes [long]"):
        view.warned(text)
    said = [line for line in text_of(target).splitlines() if "warning" in line]
    assert said == ["warning: takes 4 passes", "warning: takes [long]"]


def test_make_view_follows_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(make_view(True, console(terminal=True))) is GridObserver  # which shows nothing
    assert isinstance(make_view(False, console(terminal=False)), PlainView)
    assert isinstance(make_view(False, console(terminal=True)), LiveView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_view(False, console(terminal=True)), PlainView)
