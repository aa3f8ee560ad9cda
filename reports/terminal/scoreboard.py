"""The scoreboard as tables for a terminal."""

from __future__ import annotations

import math

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vcpo_bench.reports.formatting import MISSING, fixed, rate

ODD_ENDS = ("nan", "stopped_by", "error", "partial")
"""Counts of cells that did not run to completion; a column appears only where one is not zero."""


def scoreboard_table(board: pd.DataFrame) -> RenderableType:
    """One table per task, regime and learning rate; fits 80 columns.

    Behind `±` stands half the width of the 95% confidence interval over seeds. Controls carry an asterisk, and
    collapses are printed in red. Collapses are counted of the cells that the collapse rule could judge.

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
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    return fixed(row[name]) if math.isnan(half) else f"{fixed(row[name])} ±{half:.2f}"


def _collapsed(row: pd.Series[float]) -> Text:
    if not row["judged"]:
        return Text(MISSING)
    count = f"{int(row['collapsed'])}/{int(row['judged'])}"
    return Text(count, style="bold red" if row["collapsed"] else "")
