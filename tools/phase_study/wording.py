"""What the page of the phase study says, in words made from its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from design import TASKS
from study_pages.markdown_table import number

from vcpo_bench.analysis.wording import learning_rate

_END = "at an end of the ladder"


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The answers to the registered questions, one line each per task."""
    lines = ["**Does the rate that survives fall as 1 / lag?**", ""]
    lines += [f"- `{task}`: {_laws(tables['exponents'], task)}." for task in TASKS]
    lines += [
        "",
        "**Is VCPO more than a smaller learning rate?** Largest surviving rate of `vcpo` over that of its mean step:",
        "",
    ]
    lines += [f"- `{task}`: {_ratios(tables['rates'], task)}." for task in TASKS]
    lines += ["", "**Does VCPO end higher, each method at its own largest surviving rate?**", ""]
    lines += [f"- `{task}`: {_gains(tables['rewards'], task)}." for task in TASKS]
    lines += ["", "**Does that rate fall as 1 / updates?** Exponents at lag 16:", ""]
    lines += [f"- `{task}`: {_horizons(tables['horizons'], task)}." for task in TASKS]
    check = tables["checks"].iloc[0]
    share = f"{int(check['contradicting'])} of {int(check['checks'])} runs far from a boundary contradict it"
    lines += ["", f"**Check.** {share}, {_interval(check)}."]
    return "\n".join(lines) + "\n"


def by_lag(table: pd.DataFrame, value: str) -> str:
    """A table with a row per task and method, and a column per lag: a value with its 95% interval."""
    lags = sorted(table["staleness"].unique())
    lines = [f"| task | method | {' | '.join(f'lag {lag}' for lag in lags)} |", "|---" * (2 + len(lags)) + "|"]
    for (task, method), own in table.groupby(["task", "method"], sort=False):
        at = {row["staleness"]: row for row in own.to_dict("records")}
        cells = " | ".join(_cell(at[lag], value) if lag in at else "" for lag in lags)
        lines.append(f"| `{task}` | `{method}` | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[Any, Any], value: str) -> str:
    if value == "reward":
        return f"{number(row['reward'])} {_interval(row)}" if row["seeds"] else "no rate in common"
    if math.isinf(row["largest_rate"]):
        return f"over {learning_rate(row['low'])}"
    if math.isnan(row["largest_rate"]):
        return f"under {learning_rate(row['high'])}"
    return f"{_rate(row['largest_rate'])} [{_rate(row['low'])}, {_rate(row['high'])}]"


def _rate(value: float) -> str:
    return learning_rate(float(f"{value:.1e}")) if math.isfinite(value) else "open"


def _interval(row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    return f"[{number(float(row['low']))}, {number(float(row['high']))}]"


def _laws(exponents: pd.DataFrame, task: str) -> str:
    own = exponents[(exponents["task"] == task) & (exponents["lag"] == "asked")]
    found = []
    for verdict in ("holds", "refuted", "undecided"):
        rows = own[own["verdict"] == verdict].to_dict("records")
        each = ", ".join(f"`{row['method']}` {number(row['exponent'])} {_interval(row)}" for row in rows)
        found += [f"**{verdict}** for {each}"] if rows else []
    ends = own[own["verdict"] == _END]["method"]
    found += (
        [f"no exponent, because the ladder ends first, for {', '.join(f'`{each}`' for each in ends)}"]
        if len(ends)
        else []
    )
    return "; ".join(found)


def _ratios(rates: pd.DataFrame, task: str) -> str:
    return ", ".join(_ratio(row) for row in rates[rates["task"] == task].to_dict("records"))


def _ratio(row: Mapping[Any, Any]) -> str:
    if "both" in row["verdict"]:
        return f"at lag {row['staleness']} both lie beyond the ladder"
    value, low, high = (number(2.0 ** row[name]) for name in ("difference", "low", "high"))
    return f"at lag {row['staleness']} {value} [{low}, {high}], **{row['verdict']}**"


def _gains(rewards: pd.DataFrame, task: str) -> str:
    own, found = rewards[rewards["task"] == task], []
    for rival, rows in own.groupby("against", sort=False):
        each = ", ".join(
            f"{row['difference']:+.2f} {_interval(row)} at lag {row['staleness']} (**{row['verdict']}**)"
            for row in rows.to_dict("records")
        )
        found.append(f"against `{rival}` {each}")
    return "; ".join(found)


def _horizons(horizons: pd.DataFrame, task: str) -> str:
    own = horizons[(horizons["task"] == task) & horizons["exponent"].notna()].to_dict("records")
    return (
        ", ".join(f"`{row['method']}` {number(row['exponent'])} {_interval(row)}" for row in own) or "none can be told"
    )
