"""What the tables of `lab analyze collapse` say in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vcpo_bench.analysis.collapse.rule import KINDS
from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.intervals import ENOUGH, LEVEL
from vcpo_bench.analysis.wording import counted, p_value, row_by_row

OUTCOMES = "outcomes"
"""Topic: what became of the runs."""
SURVIVAL = "survival"
"""Topic: survival curves, and how much depends on the collapse rule."""

_RULE = ("depth", "patience", "min_drop")

_MOST_HEALTHY = 3
"""More methods without a failure at a lag are not named."""


def outcomes(found: Findings) -> Iterator[Finding]:
    """How many runs came to which end."""
    events = found.tables["events"]
    counts = events["event"].value_counts()
    named = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if kind in counts.index)
    yield found.finding(
        OUTCOMES, f"Outcomes of {counted(len(events), 'run')}: {named}.", "events", events, ("key", "event")
    )
    unresolved = events[events["unresolved"].astype(bool)]
    if len(unresolved):
        text = (
            f"{len(unresolved)} of {len(events)} runs were below the threshold of the collapse rule at their last "
            "evaluation, but for too short a time to count as collapsed."
        )
        yield found.finding(OUTCOMES, text, "events", events, ("key", "event", "unresolved"))


def failures_by_lag(found: Findings) -> Iterator[Finding]:
    """Which methods failed how often at each lag."""
    for lag, rows in found.tables["rates_by_lag"].groupby("staleness"):
        parts = []
        healthy = rows[(rows["collapsed"] == 0) & (rows["stopped"] == 0)]
        short = len(healthy) > _MOST_HEALTHY and healthy["runs"].nunique() == 1
        others = "all others" if len(healthy) < len(rows) else "every method"
        for row in (rows.drop(healthy.index[1:]) if short else rows).to_dict("records"):
            who = others if short and not row["collapsed"] and not row["stopped"] else row["method"]
            stopped = f" and {row['stopped']} stopped by an alarm" if row["stopped"] else ""
            interval = f" [{row['low']:.0%}, {row['high']:.0%}]" if row["low"] < row["high"] else ""
            parts.append((row["rate"], f"{who} {row['collapsed']} of {row['runs']}{stopped}{interval}"))
        named = "; ".join(
            text for _, text in sorted(parts, key=lambda part: (part[0], part[1].startswith("all others "), part[1]))
        )
        what = " (95% Wilson interval of the rate)" if rows["low"].notna().any() else ""
        text = f"Lag {lag}, collapsed runs{what}: {named}."
        yield found.finding(OUTCOMES, text, "rates_by_lag", rows, tuple(found.tables["rates_by_lag"].columns))


def survival(found: Findings) -> Iterator[Finding]:
    """Whether the methods survive differently, over all lags and at each."""
    columns = ("staleness", "methods", "runs", "collapsed", "fewest", "p", "least_p")
    for part, row in row_by_row(found.tables["log_rank"]):
        where = "over all lags" if row["staleness"] == "all" else f"at lag {row['staleness']}"
        differs = "differs between the methods" if row["p"] < LEVEL else "cannot be told apart between the methods"
        text = (
            f"Survival {differs} {where} (log-rank test stratified by task, regime, lag and learning rate: "
            f"{p_value(row['p'])}, {row['collapsed']} of {row['runs']} runs collapsed)."
        )
        if row["methods"] > 1 and row["collapsed"] and row["fewest"] < ENOUGH:
            few = f"{counted(row['fewest'], 'run')}, fewer than {ENOUGH}"
            text = f"Survival {where} is not compared: a method has {few}."
        elif not np.isfinite(row["p"]):
            why = "where methods ran together, none outlived another" if row["collapsed"] else "no run collapsed"
            why = (
                why
                if row["methods"] > 1
                else "only one method ran"
                if row["methods"]
                else "no run at a lag above 0 could be judged"
            )
            text = f"Survival {where} cannot be compared: {why}."
        elif row["least_p"] >= LEVEL:
            text = (
                f"Survival {where} is not compared: with {counted(row['runs'], 'run')} of "
                f"{counted(row['methods'], 'method')} an exact test cannot go below p = {row['least_p']:.2g}."
            )
        yield found.finding(SURVIVAL, text, "log_rank", part, columns, "compared" not in text)


def rule_sensitivity(found: Findings) -> Finding:
    """How the verdicts change with the parameters of the rule."""
    table = found.tables["sensitivity"]
    worst = table.sort_values("agreement").iloc[0]
    low, high = table["collapsed"].min(), table["collapsed"].max()
    counts = f"between {low} and {high} runs" if low < high else f"in each, {low} runs"
    kept = "every run keeps its verdict"
    if worst["agreement"] < 1:
        kept = (
            f"at least {worst['agreement']:.0%} of runs keep their verdict (fewest with depth {worst['depth']}, "
            f"patience {worst['patience']:.0f}, smallest drop {worst['min_drop']})"
        )
    text = f"Under {len(table)} variants of the collapse rule, {counts} count as collapsed; {kept}."
    return found.finding(SURVIVAL, text, "sensitivity", table, (*_RULE, "collapsed", "agreement"))
