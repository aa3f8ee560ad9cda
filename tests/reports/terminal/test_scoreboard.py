"""The scoreboard, as a terminal shows it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.reports.formatting import MISSING
from vcpo_bench.reports.terminal.scoreboard import scoreboard_table


def printed(results: Results, **options: object) -> str:
    console = Console(file=io.StringIO(), width=80, **options)  # type: ignore[arg-type]
    console.print(scoreboard_table(scoreboard(results)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_scoreboard_fits_80_columns_and_names_controls_and_collapses(results: Results) -> None:
    text = printed(results)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.splitlines()[0] == "chain, fifo, lr 3e-4"

    assert "reinforce*" in text
    assert text.splitlines()[-1] == "* control; ±: half the width of the 95% confidence interval over seeds"
    tis = next(line for line in text.splitlines() if " tis " in line)
    assert "6/6" in tis
    clip = next(line for line in text.splitlines() if " clip " in line)
    assert clip.split()[-1] == "6", "the nan column appears because there are some"


def test_only_cells_that_could_be_judged_count_as_not_collapsed(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    def shape(method: str, lag: int, seed: int) -> str:
        return ("collapsed", "error")[seed] if method == "tis" else "error"

    folder = make_results(tmp_path, ("tis", "clip"), (16,), (0, 1), 60, shapes=shape, controls=False)
    lines = printed(load(folder)).splitlines()
    assert "1/1" in next(line for line in lines if "tis" in line)
    clip = next(line for line in lines if "clip" in line)
    assert "0/" not in clip
    assert MISSING in clip.split()[-2]


def test_scoreboard_honors_no_color(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1;31m" in printed(results, force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in printed(results, force_terminal=True)
    assert "\x1b[31m" not in printed(results, force_terminal=True)


def test_long_method_names_fold_instead_of_breaking_the_table(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    name = "vcpo(baseline=group,cap=8,ess=linear,variant=released)+clip-higher(high=0.28)"
    text = printed(load(make_results(tmp_path, methods=(name,), lags=(1,), seeds=(0,), steps=60)))
    assert max(len(line) for line in text.splitlines()) <= 80
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith(("chain", "*", "lag"))]
    assert name in "".join(line[5:].partition("  ")[0].strip() for line in rows)


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100])
def test_no_bound_is_cut_at_any_width(results: Results, width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    board = scoreboard(results)
    console.print(scoreboard_table(board))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for row in board.to_dict("records"):
        half = (row["final_reward_high"] - row["final_reward_low"]) / 2
        low, high = f"{row['final_reward_low']:.2f}", f"{row['final_reward_high']:.2f}"
        assert f"±{half:.2f}" in text or f"[{low}, {high}]" in text


def test_the_lag_at_onset_stands_where_it_fits_and_something_failed(results: Results) -> None:
    def wide(board: pd.DataFrame) -> str:
        console = Console(file=io.StringIO(), width=160)
        console.print(scoreboard_table(board))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    board = scoreboard(results)
    assert "lag at onset" in wide(board)
    assert "lag at onset" not in wide(board.assign(lag_at_onset=np.nan))
    narrow = Console(file=io.StringIO(), width=60)
    narrow.print(scoreboard_table(board))
    assert isinstance(narrow.file, io.StringIO)
    assert "lag at onset" not in narrow.file.getvalue()
