"""Small learning curves drawn with braille characters."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.comparison.scoreboard import cell_summary
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import trailing_mean
from vcpo_bench.reports.formatting import fixed, rate

CURVE_WIDTH = 56
CURVE_HEIGHT = 4
SMOOTHING = 20
"""Updates of the trailing mean."""

_LEGEND = "  reward: mean over 20 updates; ESS: median ratio, until the onset of a collapse"

_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a character, by row and column."""


def curves(results: Results) -> str:
    """Reward against update, one small chart per task, lag, learning rate and method; a collapse is named in its title.

    Each line is the sampled reward, smoothed by a trailing mean over 20 updates and averaged over seeds, on an axis
    from 0 to the highest value of its group. Its title gives the median ESS ratio, of collapsed runs until the onset.
    """
    lines: list[str] = []
    rewards = {key: rows.to_numpy() for key, rows in results.steps.groupby("key", sort=False)["sampled_reward"]}
    for (task, lag, lr), cells in cell_summary(results).groupby(["task", "staleness", "lr"], sort=True, dropna=False):
        lines.append(f"{task}, lag {lag}, lr {rate(lr)}: reward of the current policy against update")
        smooth = {key: trailing_mean(rewards[key], SMOOTHING) for key in cells["key"] if key in rewards}
        top = max((float(np.nanmax(one)) for one in smooth.values() if np.isfinite(one).any()), default=1.0) or 1.0
        for method, runs in cells.groupby("method", sort=True):
            series = [smooth[key] for key in runs["key"] if key in smooth]
            onsets = [int(onset) for onset in runs.loc[runs["collapsed"], "onset"]]
            lines += _chart(str(method), series, onsets, _ess(results, runs), top)
    if lines:
        lines.append(_LEGEND)
    return "\n".join(lines)


def _ess(results: Results, runs: pd.DataFrame) -> float:
    """Median ESS ratio of some runs: after its onset, a collapsed policy can look on-policy again."""
    steps = results.steps.merge(runs[["key", "collapsed", "onset"]], on="key")
    counted = steps.loc[~steps["collapsed"].astype(bool) | (steps["step"] < steps["onset"]), "ess_ratio"].dropna()
    return float(counted.median()) if len(counted) else float("nan")


def _chart(method: str, runs: list[NDArray[np.float64]], onsets: list[int], ess: float, top: float) -> list[str]:
    if not runs:
        return [f"  {method}: nothing recorded"]
    mean = mean_over_runs(runs)
    title = f"  {method}: ends at {fixed(mean[-1])}"
    if onsets:
        title += f", COLLAPSED at update {onsets[0]}" if len(runs) == 1 else f", {len(onsets)} of {len(runs)} COLLAPSED"
    if np.isfinite(ess):
        title += f", ESS {fixed(ess)}"
    rows = braille(mean, CURVE_WIDTH, CURVE_HEIGHT, top)
    labels = [f"{top:5.2f} "] + ["      "] * (CURVE_HEIGHT - 2) + [" 0.00 "]
    body = [f"{label}│{row}" for label, row in zip(labels, rows, strict=True)]
    return [title, *body, f"      └{'─' * CURVE_WIDTH} {mean.size}"]


def mean_over_runs(runs: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean at each update over the runs (of possibly different length) that have a finite value there; NaN if none.

    Args:
        runs: Series of shapes [S_i].

    Returns:
        Shape [max S_i].
    """
    grid = np.full((len(runs), max(run.size for run in runs)), np.nan)
    for row, run in zip(grid, runs, strict=True):
        row[: run.size] = run
    count = np.isfinite(grid).sum(axis=0)
    return np.where(count > 0, np.nansum(grid, axis=0) / np.maximum(count, 1), np.nan)


def braille(values: NDArray[np.float64], width: int, height: int, top: float) -> list[str]:
    """Draw a series as `height` lines of `width` braille characters (2 x 4 dots each), from 0 up to `top`.

    Args:
        values: Shape [S]; non-finite values leave a gap, those outside 0..top are drawn at the edge.
        width: Characters per line.
        height: Lines.
        top: Value at the upper edge, positive.
    """
    columns, rows = 2 * width, 4 * height
    cells = [[0] * width for _ in range(height)]
    edges = np.linspace(0, values.size, columns + 1)
    previous: int | None = None
    for column in range(columns):
        index = min(int((edges[column] + edges[column + 1]) / 2), values.size - 1)
        if index < 0 or not np.isfinite(values[index]):
            previous = None
            continue
        level = round(float(np.clip(values[index] / top, 0.0, 1.0)) * (rows - 1))
        # Connect to the previous dot, so that a sudden drop is a line and not two distant points.
        reach = range(level, level + 1) if previous is None else range(min(level, previous), max(level, previous) + 1)
        for dot in reach:
            line, row = divmod(rows - 1 - dot, 4)
            cells[line][column // 2] |= _BRAILLE[row][column % 2]
        previous = level
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]
