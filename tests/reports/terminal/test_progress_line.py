"""How far a long command is."""

from __future__ import annotations

import io
import time

from rich.console import Console

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
