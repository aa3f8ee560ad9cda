"""What the page of the phase study says, in words made from its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from study_pages.markdown_table import markdown, number

from vcpo_bench.analysis.wording import counted, learning_rate, with_interval

from .boundary import LEAST_SEEDS
from .checks import DRAWN, LENT
from .contrasts import BOTH_AT_END, RATE_MARGIN, TOO_FEW
from .design import TASKS
from .tables import HORIZON_LAG

VERDICTS = ("holds", "refuted", "undecided", "equivalent", "more", "less")
_UNKNOWN = ("open", "")
_END = "at an end of the ladder"
_KINDS = {
    DRAWN: "at least two rates away from a boundary, drawn at random",
    LENT: "only to lend a mean step, at any distance",
}
MOST_CONTRADICTIONS = 0.1
"""As registered: with a larger share the page leads with it."""


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The answers to the registered questions, one line each per task."""
    check = tables["checks"].iloc[0]
    parts = [
        part("Does the rate that survives fall as 1 / lag?", laws, tables["exponents"]),
        part(
            "Is VCPO more than a smaller learning rate?",
            ratios,
            tables["rates"],
            "Largest surviving rate of `vcpo` over that of the same updates with a constant step of the same mean. "
            + reach(tables["rates"]),
        ),
        part(
            "And at the same learning rate and seed?",
            _same,
            tables["same_rate"],
            "Not registered before the first run.",
        ),
        part(
            "Does VCPO end higher, each method at its own largest surviving rate?",
            gains,
            tables["rewards"],
            _dented(tables["rewards"]),
        ),
        part("Does that rate fall as 1 / updates?", _horizons, tables["horizons"], f"At lag {HORIZON_LAG}."),
    ]
    place = 0 if check["contradicting"] > MOST_CONTRADICTIONS * check["runs"] else len(parts)
    parts.insert(place, answer_checks(tables["checks"]))
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def part(question: str, words: Callable[[pd.DataFrame, str], str], table: pd.DataFrame, note: str = "") -> list[str]:
    """A question and its answer for each task."""
    lead = f"**{question}** {note}".strip()
    tasks = [task for task in TASKS if (table["task"] == task).any()] or list(table["task"].unique())
    return [lead, "", *(f"- `{task}`: {words(table, task)}." for task in tasks)]


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
    return _estimate(row["largest_rate"], row["low"], row["high"], _rate)


def ends(levels: pd.DataFrame) -> str:
    """How many units of each task, method and lag lie beyond the ladder; those of which none does are left out."""
    found = levels[(levels["at_top"] > 0) | (levels["at_bottom"] > 0)]
    columns = ["task", "method", "staleness", "seeds", "at_top", "at_bottom"]
    return markdown(found[columns]) if len(found) else "No unit lies beyond the ladder.\n"


def counted_verdicts(tables: Mapping[str, pd.DataFrame]) -> str:
    """How many verdicts stand on the page, and how many of them may be chance."""
    said = sum(int(table["verdict"].isin(VERDICTS).sum()) for table in tables.values() if "verdict" in table)
    return (
        f"{said} verdicts stand below; they are not corrected for their number, and at 5% each about {said * 0.05:.0f}"
    )


def _estimate(value: float, low: float, high: float, shown: Callable[[float], str], unit: str = "") -> str:
    """An estimate with its interval; where the ladder or the search cuts it off, the end that is known."""
    if math.isfinite(value):
        return f"{shown(value)}{unit} [{shown(low)}, {shown(high)}]"
    if shown(low) not in _UNKNOWN:
        return f"over {shown(low)}{unit}"
    return f"under {shown(high)}{unit}" if shown(high) not in _UNKNOWN else "unknown"


def _positive(value: float) -> str:
    """A ratio, whose open ends are 0 and infinity."""
    return "open" if value == 0 else number(value)


def _rate(value: float) -> str:
    return learning_rate(float(f"{value:.1e}")) if 0 < value < math.inf else _positive(value)


def _interval(row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    return f"[{number(float(row['low']))}, {number(float(row['high']))}]"


def laws(exponents: pd.DataFrame, task: str) -> str:
    """Which methods the law of 1 / lag holds for, with their exponents."""
    own = exponents[(exponents["task"] == task) & (exponents["lag"] == "asked")]
    found = []
    for verdict in ("holds", "refuted", "undecided"):
        rows = own[own["verdict"] == verdict].to_dict("records")
        each = ", ".join(
            f"`{row['method']}` {_estimate(row['exponent'], row['low'], row['high'], number)}" for row in rows
        )
        found += [f"**{verdict}** for {each}"] if rows else []
    ends = own[own["verdict"] == _END]["method"]
    found += (
        [f"no exponent, because the ladder ends first, for {', '.join(f'`{each}`' for each in ends)}"]
        if len(ends)
        else []
    )
    return "; ".join(found)


def ratios(rates: pd.DataFrame, task: str) -> str:
    """How many times the rate of its control VCPO tolerates, lag by lag."""
    return "; ".join(_times(row) for row in rates[rates["task"] == task].to_dict("records"))


def _times(row: Mapping[Any, Any]) -> str:
    lag = f"lag {row['staleness']}"
    if row["verdict"] == BOTH_AT_END:
        return f"{lag}: both lie beyond the ladder"
    if row["verdict"] == TOO_FEW:
        return f"{lag}: {TOO_FEW}"
    value, low, high = (2.0 ** row[name] for name in ("difference", "low", "high"))
    return f"{lag}: {_estimate(value, low, high, _positive, ' times')} (**{row['verdict']}**)"


def reach(rates: pd.DataFrame) -> str:
    """How far the interval between equal boundaries would reach, and whether *equivalent* is within reach."""
    if "reach90" not in rates:
        return ""
    most = rates.sort_values("seeds").iloc[-1]
    factor, seeds = number(2.0 ** most["reach90"]), int(most["seeds"])
    lead = (
        f"If the two lay between the same rates in all {seeds} seeds, the 90% interval would reach a factor of {factor}"
    )
    margin = number(2.0**RATE_MARGIN)
    if most["reach90"] > RATE_MARGIN:
        return f"{lead} either way: *equivalent*, within a factor of {margin}, is out of reach here."
    return f"{lead} either way; *equivalent* is within a factor of {margin}."


def _same(table: pd.DataFrame, task: str) -> str:
    return "; ".join(_pairs(row) for row in table[table["task"] == task].to_dict("records"))


def _pairs(row: Mapping[Any, Any]) -> str:
    alone = f"only `vcpo` in {row['only_vcpo']}, only its control in {row['only_matched']}"
    lives = (
        f"at lag {row['staleness']} both survive in {row['both_survive']} of {counted(row['pairs'], 'pair')}, {alone}"
    )
    if row["verdict"] == TOO_FEW:
        return f"{lives}, {TOO_FEW} to compare their reward"
    gap = with_interval(row["difference"], row["low"], row["high"], 3)
    return f"{lives}, difference in reward where both do {gap} (**{row['verdict']}**)"


def _dented(rewards: pd.DataFrame) -> str:
    ours = rewards.sort_values("seeds").drop_duplicates(["task", "staleness"], keep="last")
    dented = int(ours["dented_vcpo"].sum() + rewards["dented_rival"].sum())
    runs = int(ours["seeds"].sum() + rewards["seeds"].sum())
    return (
        f"These rates lie next to failure: {dented} of the {runs} runs compared stalled or dipped. "
        "A method that tolerates a larger rate is judged at a larger one."
    )


def answer_checks(checks: pd.DataFrame) -> list[str]:
    """What the check runs say; nothing where there are none."""
    rows = [row for row in checks.to_dict("records") if row["runs"]]
    lead = "**Check.** Does failure grow with the rate? Runs outside of the search of their unit:"
    return [lead, "", *(f"- {_check(row)}." for row in rows)] if rows else []


def _check(row: Mapping[Any, Any]) -> str:
    runs = f"{counted(row['runs'], 'run')} made {_KINDS[row['kind']]}"
    return f"{runs}: {row['contradicting']} against the boundary of their unit, share {_interval(row)}"


def gains(rewards: pd.DataFrame, task: str) -> str:
    """How much higher VCPO ends than its rivals, lag by lag."""
    own, found = rewards[rewards["task"] == task], []
    for rival, rows in own.groupby("against", sort=False):
        found.append(f"against `{rival}` {', '.join(_gain(row) for row in rows.to_dict('records'))}")
    return "; ".join(found)


def _gain(row: Mapping[Any, Any]) -> str:
    if row["verdict"] == TOO_FEW:
        return f"{TOO_FEW} at lag {row['staleness']}"
    value = with_interval(row["difference"], row["low"], row["high"])
    return f"{value} at lag {row['staleness']} (**{row['verdict']}**)"


def _horizons(horizons: pd.DataFrame, task: str) -> str:
    own = horizons[(horizons["task"] == task) & horizons["exponent"].notna()]
    seeds = int(own["seeds"].max()) if len(own) else 0
    if not seeds:
        return "no exponent, because the ladder ends first"
    if seeds < LEAST_SEEDS:
        return f"not answered: {seeds} seeds give no interval; estimates are in the table below"
    rows = own.to_dict("records")
    return ", ".join(f"`{row['method']}` {with_interval(row['exponent'], row['low'], row['high'])}" for row in rows)
