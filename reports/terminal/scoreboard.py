"""The scoreboard as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vcpo_bench.analysis.comparison.scoreboard import ODD_ENDS
from vcpo_bench.analysis.tolerance import EQUAL
from vcpo_bench.reports.formatting import MISSING, fixed, interval, rate


def scoreboard_table(board: pd.DataFrame) -> RenderableType:
    """One table per task, regime and learning rate; fits 80 columns.

    Behind `±` stands half the width of the 95% confidence interval over seeds; where it ends at 0 or 1, both ends stand
    in brackets. Controls carry an asterisk, and collapses are printed in red. Collapses are counted of
    the cells that the collapse rule could judge.

    Args:
        board: The rows of `analysis.comparison.scoreboard.scoreboard`.
    """
    parts: list[RenderableType] = []
    for (task, regime, lr), rows in board.groupby(["task", "regime", "lr"], sort=True, dropna=False):
        parts.append(Text(f"{task}, {regime}, lr {rate(lr)}", style="bold"))
        parts.append(_table(rows))
    legend = ["* control"] if bool(board["control"].any()) else []
    if bool(board[["final_reward_low", "best_reward_low"]].notna().any(axis=None)):
        legend.append("±: half the width of the 95% confidence interval over seeds")
    if any(_cut(row, name) for row in board.to_dict("records") for name in ("final_reward", "best_reward")):
        legend[-1] = "±: half the 95% interval over seeds; []: its ends, cut at 0 or 1"
    return Group(*parts, Text("; ".join(legend), style="dim")) if legend else Group(*parts)


def _table(rows: pd.DataFrame) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("method", max_width=26, overflow="fold")
    for heading in ("final reward", "best", "ESS", "collapsed"):
        table.add_column(heading, justify="right", no_wrap=True)
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
        values = [_with_interval(row, "final_reward"), _with_interval(row, "best_reward"), fixed(row["median_ess"])]
        table.add_row(lag, method, *values, _collapsed(row), *[str(int(row[name])) for name in odd])
    return table


def _with_interval(row: pd.Series[float], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(high - low):
        return fixed(row[name])
    return f"{fixed(row[name])} " + (interval(low, high) if _cut(row, name) else f"±{(high - low) / 2:.2f}")


def _cut(row: Mapping[Any, Any] | pd.Series[float], name: str) -> bool:
    """Whether the interval of a reward was cut at 0 or 1, and so is not symmetric."""
    return bool(abs(row[f"{name}_low"] + row[f"{name}_high"] - 2 * row[name]) > EQUAL)


def _collapsed(row: pd.Series[float]) -> Text:
    if not row["judged"]:
        return Text(MISSING)
    count = f"{int(row['collapsed'])}/{int(row['judged'])}"
    return Text(count, style="bold red" if row["collapsed"] else "")
