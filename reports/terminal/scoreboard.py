"""The scoreboard and small learning curves on a terminal."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vcpo_bench.analysis.comparison.scoreboard import cell_summary
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import trailing_mean
from vcpo_bench.reports.formatting import rate

CURVE_WIDTH = 56
CURVE_HEIGHT = 4
SMOOTHING = 20

_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def scoreboard_table(board: pd.DataFrame) -> RenderableType:
    """The scoreboard of `analysis.comparison.scoreboard.scoreboard`, one table per task, regime and learning rate.

    Fits 80 columns. Intervals are half widths of 95% over seeds; controls carry an asterisk; collapses stand out.
    """
    parts: list[RenderableType] = []
    for (task, regime, lr), rows in board.groupby(["task", "regime", "lr"], sort=True, dropna=False):
        parts.append(Text(f"{task}, {regime}, lr {rate(lr)}", style="bold"))
        parts.append(_table(rows))
    if bool(board["control"].any()):
        parts.append(Text("* control", style="dim"))
    return Group(*parts)


def _table(rows: pd.DataFrame) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("method", max_width=26, overflow="fold")
    for heading in ("final reward", "best", "ESS", "collapsed"):
        table.add_column(heading, justify="right", no_wrap=True)
    odd = [name for name in ("nan", "stopped_by", "error", "partial") if int(rows[name].sum())]
    for name in odd:
        table.add_column(name, justify="right", no_wrap=True)
    last_lag: object = None
    for _, row in rows.iterrows():
        lag = "" if row["staleness"] == last_lag else str(row["staleness"])
        last_lag = row["staleness"]
        method = Text(
            f"{row['method']}*" if row["control"] else str(row["method"]), style="dim" if row["control"] else ""
        )
        values = [_with_interval(row, "final_reward"), _with_interval(row, "best_reward"), _fixed(row["median_ess"])]
        table.add_row(lag, method, *values, _collapsed(row), *[str(int(row[name])) for name in odd])
    return table


def _with_interval(row: pd.Series[float], name: str) -> str:
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    return _fixed(row[name]) if math.isnan(half) else f"{_fixed(row[name])} ±{half:.2f}"


def _fixed(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.2f}"


def _collapsed(row: pd.Series[float]) -> Text:
    count = f"{int(row['collapsed'])}/{int(row['total'])}"
    return Text(count, style="bold red" if row["collapsed"] else "")


def curves(results: Results) -> str:
    """Reward against update as small terminal charts, one per task, lag, learning rate and method; collapses are named.

    The line is the trailing mean over 20 updates of the sampled reward, averaged over seeds, on an axis from 0 to the
    best value of its task.
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
            lines += _chart(str(method), series, onsets, top)
    return "\n".join(lines)


def _chart(method: str, runs: list[NDArray[np.float64]], onsets: list[int], top: float) -> list[str]:
    if not runs:
        return [f"  {method}: nothing recorded"]
    mean = mean_over_runs(runs)
    title = f"  {method}: ends at {_fixed(mean[-1])}"
    if onsets:
        title += f", COLLAPSED at update {onsets[0]}" if len(runs) == 1 else f", {len(onsets)} of {len(runs)} COLLAPSED"
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
        values: Shape [S]; non-finite values leave a gap, those outside 0..top are drawn at the rim.
        width: Characters per line.
        height: Lines.
        top: The value at the upper rim, positive.
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
        # The stroke also covers the way from the last dot, so that a cliff is a line and not two far points.
        reach = range(level, level + 1) if previous is None else range(min(level, previous), max(level, previous) + 1)
        for dot in reach:
            line, row = divmod(rows - 1 - dot, 4)
            cells[line][column // 2] |= _BRAILLE[row][column % 2]
        previous = level
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]
