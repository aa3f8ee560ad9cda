"""What a run says at its end, in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.reports.outcome import outcome


def test_the_best_at_each_lag_and_what_collapsed(results: Results) -> None:
    board = scoreboard(results)
    best = board[(board["method"] == "vcpo") & (board["staleness"] == 16)].iloc[0]
    highest, fallen = outcome(board)
    assert highest == f"chain, highest final reward: vcpo {best['final_reward']:.2f} at lag 16"
    count = int(board["collapsed"].sum())
    assert fallen.startswith(f"{count} of {len(results.cells)} runs collapsed: ")
    assert "tis at lag 16" in fallen
    assert "clip at lag 16" in fallen, "nan is a collapse"


def test_of_several_rates_the_best_is_named_and_nothing_else_is_claimed(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_results(tmp_path, ("vcpo",), (1, 16), (0,), 60, lrs=(1e-4, 3e-4), controls=False)
    board = scoreboard(load(folder))
    highest, fallen = outcome(board)
    assert highest.count("vcpo (lr ") == 2
    assert fallen == "none of 4 runs collapsed"
    assert list(outcome(board.assign(judged=0, final_reward=float("nan")))) == []
