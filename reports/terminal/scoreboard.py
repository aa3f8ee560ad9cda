"""The scoreboard as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from vcpo_bench.analysis.comparison.scoreboard import ODD_ENDS
from vcpo_bench.analysis.tolerance import EQUAL
from vcpo_bench.reports.formatting import MISSING, fixed, interval, rate

SHORTEST_METHOD = 8
"""Columns that a method keeps; longer ones fold."""
_WIDEST = 1000


def scoreboard_table(board: pd.DataFrame) -> RenderableType:
    """One table per task, regime and learning rate.

    Where a table is too wide, the lag at onset is left out, intervals move below their values, then the best reward and
    the ESS are left out.

    Behind `±` stands half the width of the 95% confidence interval over seeds; where it ends at 0 or 1, both ends stand
    in brackets. Controls carry an asterisk, and collapses are printed in red. Collapses are counted of
    the cells that the collapse rule could judge.
    """
    parts: list[RenderableType] = []
    for (task, regime, lr), rows in board.groupby(["task", "regime", "lr"], sort=True, dropna=False):
        parts.append(Text(f"{task}, {regime}, lr {rate(lr)}", style="bold"))
        parts.append(_Fitting(rows))
    legend = ["* control"] if bool(board["control"].any()) else []
    if bool(board[["final_reward_low", "best_reward_low"]].notna().any(axis=None)):
        legend.append("±: half the width of the 95% confidence interval over seeds")
    if any(_cut(row, name) for row in board.to_dict("records") for name in ("final_reward", "best_reward")):
        legend[-1] = "±: half the 95% interval over seeds; []: its ends, cut at 0 or 1"
    return Group(*parts, Text("; ".join(legend), style="dim")) if legend else Group(*parts)


@dataclass(frozen=True)
class _Shape:
    """How much of the scoreboard is shown; `below`: intervals stand below their values."""

    below: bool = False
    best: bool = True
    ess: bool = True
    onset: bool = False


_NARROW = (_Shape(below=True), _Shape(below=True, best=False), _Shape(below=True, best=False, ess=False))
_SHAPES = (_Shape(onset=True), _Shape(), *_NARROW)
"""From the widest to the narrowest: a column is left out whole before a bound is cut."""


class _Fitting:
    """The widest shape of a table that fits where it is printed."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = (shape for shape in _SHAPES if _least_width(console, self._rows, shape) <= options.max_width)
        yield _table(self._rows, next(fitting, _SHAPES[-1]))


def _least_width(console: Console, rows: pd.DataFrame, shape: _Shape) -> int:
    """Columns it takes with methods folded as far as is readable."""
    wide = console.options.update(width=_WIDEST)
    width = _WIDEST if shape.onset else SHORTEST_METHOD  # no method folds for the lag at onset
    return Measurement.get(console, wide, _table(rows, shape, width)).maximum


def _table(rows: pd.DataFrame, shape: _Shape, method_width: int | None = None) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("method", max_width=method_width, overflow="fold")
    rewards = ["final_reward", *(["best_reward"] if shape.best else [])]
    headings = ["final reward", *(["best"] if shape.best else []), *(["ESS"] if shape.ess else []), "collapsed"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    onset = shape.onset and bool(rows["lag_at_onset"].notna().any())
    if onset:
        table.add_column("lag at onset", justify="right", no_wrap=True)
    odd = [name for name in ODD_ENDS if int(rows[name].sum())]
    for name in odd:
        table.add_column(name, justify="right", no_wrap=True)
    last_lag: object = None
    for _, row in rows.iterrows():
        lag = "" if row["staleness"] == last_lag else str(row["staleness"])
        last_lag = row["staleness"]
        method = Text(
            f"{row['method']}*" if row["control"] else str(row["method"]), style="dim" if row["control"] else ""
        )
        values = [_with_interval(row, name, shape.below) for name in rewards]
        values += [fixed(row["median_ess"])] if shape.ess else []
        began = [fixed(row["lag_at_onset"], 0)] if onset else []
        table.add_row(lag, method, *values, _collapsed(row), *began, *[str(int(row[name])) for name in odd])
    return table


def _with_interval(row: pd.Series[float], name: str, below: bool) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(high - low):
        return fixed(row[name])
    gap = "\n" if below else " "
    return f"{fixed(row[name])}{gap}" + (interval(low, high) if _cut(row, name) else f"±{(high - low) / 2:.2f}")


def _cut(row: Mapping[Any, Any] | pd.Series[float], name: str) -> bool:
    """Whether the interval of a reward was cut at 0 or 1, and so is not symmetric."""
    return bool(abs(row[f"{name}_low"] + row[f"{name}_high"] - 2 * row[name]) > EQUAL)


def _collapsed(row: pd.Series[float]) -> Text:
    if not row["judged"]:
        return Text(MISSING)
    count = f"{int(row['collapsed'])}/{int(row['judged'])}"
    return Text(count, style="bold red" if row["collapsed"] else "")
