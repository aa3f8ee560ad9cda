"""Text for a terminal, and what a run says at its end."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.table import Table

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.reports.outcome import outcome
from vcpo_bench.reports.terminal.plain_console import PlainConsole
from vcpo_bench.reports.terminal.printable import LONGEST_LINE, one_printable_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b2J", r"\x9b2J"),
        ("a\rb\x07\x00", r"a\rb\x07\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("half \udcff", r"half \udcff"),
        ("line\u2028break", r"line\u2028break"),
    ],
)
def test_what_a_terminal_obeys_is_spelled(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["two\nlines\tand a tab", "± λ ⣿ │ é 漢 🎉 \N{MINUS SIGN}", "", "no\u00a0break"])
def test_everything_else_stays(text: str) -> None:
    assert printable(text) == text


def test_an_error_is_one_line_of_bounded_length() -> None:
    assert one_printable_line("first\n  second\x1b") == r"first second\x1b"
    long = one_printable_line("a" * 10**6 + "b")
    assert len(long) < LONGEST_LINE + 10
    assert long.endswith("ab")


def test_tables_show_markup_and_controls_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    table = Table()
    table.add_column("[red]method[/red]")
    table.add_row("\x1b]0;owned\x07 [bold]x[/bold] [/] :smile:")
    PlainConsole(width=200).print(table)
    assert r"\x1b]0;owned\x07 [bold]x[/bold] [/] :smile:" in stream.getvalue()
    assert "[red]method[/red]" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_the_best_at_each_lag_and_what_collapsed(results: Results) -> None:
    board = scoreboard(results)
    best = board[(board["method"] == "vcpo") & (board["staleness"] == 16)].iloc[0]
    highest, fallen = outcome(board)
    assert highest == f"chain, highest final reward: vcpo {best['final_reward']:.2f} at lag 16"
    count = int(board["collapsed"].sum())
    assert fallen.startswith(f"{count} of {len(results.cells)} runs collapsed: ")
    assert "tis at lag 16" in fallen
    assert "clip at lag 16" in fallen, "nan is a collapse"
    dead = board.assign(judged=board["judged"].clip(lower=1), collapsed=board["judged"].clip(lower=1))
    (fallen,) = outcome(dead)
    assert "runs collapsed: " in fallen, "and nothing of the reward they had"


def test_of_several_rates_the_best_is_named_and_nothing_else_is_claimed(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_results(tmp_path, ("vcpo",), (1, 16), (0,), 60, lrs=(1e-4, 3e-4), controls=False)
    board = scoreboard(load(folder))
    highest, fallen = outcome(board)
    assert highest.count("vcpo (lr ") == 2
    assert fallen == "none of 4 runs collapsed"
    assert list(outcome(board.assign(judged=0, final_reward=float("nan")))) == []
