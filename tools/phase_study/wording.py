"""What the page of the phase study says, in words made from its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from study_pages.markdown_table import number

from vcpo_bench.analysis.wording import learning_rate

from .checks import DRAWN, LENT
from .contrasts import TOO_FEW
from .design import TASKS

_END = "at an end of the ladder"
_KINDS = {
    DRAWN: "at least two rates away from a boundary, drawn at random",
    LENT: "that only lent their mean step and lie at any distance",
}


MOST_CONTRADICTIONS = 0.1
"""As registered: with a larger share the page leads with it."""


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The answers to the registered questions, one line each per task."""
    check = tables["checks"].iloc[0]
    parts = [
        _part("Does the rate that survives fall as 1 / lag?", _laws, tables["exponents"]),
        _part(
            "Is VCPO more than a smaller learning rate?",
            _ratios,
            tables["rates"],
            "Largest surviving rate of `vcpo` over that of the same updates with a constant step of the same mean. "
            + _reach(tables["rates"]),
        ),
        _part(
            "And at the same learning rate and seed?",
            _same,
            tables["same_rate"],
            "Not registered before the first run.",
        ),
        _part(
            "Does VCPO end higher, each method at its own largest surviving rate?",
            _gains,
            tables["rewards"],
            _dented(tables["rewards"]),
        ),
        _part("Does that rate fall as 1 / updates?", _horizons, tables["horizons"], "Exponents at lag 16:"),
    ]
    place = 0 if check["contradicting"] > MOST_CONTRADICTIONS * check["runs"] else len(parts)
    parts.insert(place, [f"**Check.** {_check(row)}." for row in tables["checks"].to_dict("records") if row["runs"]])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _part(question: str, words: Callable[[pd.DataFrame, str], str], table: pd.DataFrame, note: str = "") -> list[str]:
    lead = f"**{question}** {note}".strip()
    return [lead, "", *(f"- `{task}`: {words(table, task)}." for task in TASKS)]


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
        edge = " ‡" if row["at_lowest"] * 2 > row["seeds"] else ""
        return f"{number(row['reward'])} {_interval(row)}{edge}" if row["seeds"] else "no rate in common"
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


def _reach(rates: pd.DataFrame) -> str:
    """Why *equivalent* may be out of reach."""
    if "reach90" not in rates:
        return ""
    most = rates.loc[rates["seeds"].idxmax()]
    factor, seeds = number(2.0 ** most["reach90"]), int(most["seeds"])
    return (
        f"If the two lay between the same rates in all of {seeds} seeds, the 90% interval would still reach a factor "
        f"of {factor} either way."
    )


def _same(table: pd.DataFrame, task: str) -> str:
    return "; ".join(_pairs(row) for row in table[table["task"] == task].to_dict("records"))


def _pairs(row: Mapping[Any, Any]) -> str:
    alone = f"only `vcpo` in {row['only_vcpo']}, only its control in {row['only_matched']}"
    lives = f"at lag {row['staleness']} both survive in {row['both_survive']} of {row['pairs']} pairs, {alone}"
    if row["verdict"] == TOO_FEW:
        return f"{lives}; {TOO_FEW} to compare their reward"
    gap = f"{row['difference']:+.3f} [{row['low']:.3f}, {row['high']:.3f}], **{row['verdict']}**"
    return f"{lives}; reward where both survive {gap}"


def _dented(rewards: pd.DataFrame) -> str:
    ours = rewards.sort_values("seeds").drop_duplicates(["task", "staleness"], keep="last")
    dented = int(ours["dented_vcpo"].sum() + rewards["dented_rival"].sum())
    runs = int(ours["seeds"].sum() + rewards["seeds"].sum())
    return (
        f"These rates lie next to failure: {dented} of the {runs} runs compared stalled or dipped. Whoever bears a "
        "larger rate is judged at a larger one."
    )


def _check(row: Mapping[Any, Any]) -> str:
    runs = f"Of {row['runs']} runs {_KINDS[row['kind']]}, {row['contradicting']}"
    return f"{runs} contradict the boundary of their unit, {_interval(row)}"


def _gains(rewards: pd.DataFrame, task: str) -> str:
    own, found = rewards[rewards["task"] == task], []
    for rival, rows in own.groupby("against", sort=False):
        each = ", ".join(_gain(row) for row in rows.to_dict("records"))
        found.append(f"against `{rival}` {each}")
    return "; ".join(found)


def _gain(row: Mapping[Any, Any]) -> str:
    if row["verdict"] == TOO_FEW:
        return f"{TOO_FEW} at lag {row['staleness']}"
    value = f"{row['difference']:+.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{value} at lag {row['staleness']} (**{row['verdict']}**)"


def _horizons(horizons: pd.DataFrame, task: str) -> str:
    own = horizons[(horizons["task"] == task) & horizons["exponent"].notna()].to_dict("records")
    return (
        ", ".join(f"`{row['method']}` {number(row['exponent'])}{_if_known(row)}" for row in own) or "none can be told"
    )


def _if_known(row: Mapping[Any, Any]) -> str:
    return f" {_interval(row)}" if math.isfinite(row["low"]) else ""
