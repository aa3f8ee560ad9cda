"""What the page of the boundary study says, in words made from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from study_pages.markdown_table import number

from vcpo_bench.analysis.intervals import LEVEL
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.null_models import DRAWS, WITHIN
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD as LEAD_OF_NULLS

from .areas import LEADS, PRIMARY_LEAD
from .verdicts import BAR, CHANCE


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The registered question for ESS, its rivals alone and against ESS, and the other leads.

    Args:
        tables: Of `verdicts.made`, with enough places.
    """
    signals = {row["signal"]: row for row in tables["signals"].to_dict("records")}
    leads = {(row["signal"], row["lead"]): row for row in tables["leads"].to_dict("records")}
    ess = signals.pop(PRIMARY)
    rivals = dict(tables["rivals"][["rival", "verdict"]].itertuples(index=False))
    by_lead = [f"{lead}: {_area(leads[PRIMARY, lead])}" for lead in LEADS]
    lines = [
        f"**ESS, {PRIMARY_LEAD} updates ahead: {ess['verdict']}.** AUROC {_area(ess)} against a bar of {BAR:g}; "
        f"{ess['failed']:.0f} failed and {ess['survivors']:.0f} surviving seeds of {ess['places']:.0f} configurations. "
        f"{_against_chance(ess)}",
        f"ESS by lead, without a bar: {'; '.join(by_lead)}.",
        f"Rivals alone: {_by_verdict({name: row['verdict'] for name, row in signals.items()})}.",
        f"ESS against each rival, paired: {_by_verdict(rivals)}.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def reversed_signals(tables: Mapping[str, pd.DataFrame]) -> str:
    """A sentence on each signal whose interval lies below 0.5, read the other way round, and what is left of it.

    Args:
        tables: Of `verdicts.made`.
    """
    rows, leads = tables["signals"], tables["chance"]
    below = list(rows.loc[rows["high"] < CHANCE, "signal"])
    return " ".join(_reversed(str(name), leads[leads["signal"] == name]) for name in below)


def _reversed(name: str, own: pd.DataFrame) -> str:
    rows = own.to_dict("records")
    areas = ", ".join(f"{number(row['auroc'])} at {row['lead']} updates" for row in rows)
    turned = ", ".join(f"{number(1 - row['auroc'])}" for row in rows)
    p = ", ".join(number(row["p_holm"]) for row in rows)
    if own["p_holm"].min() < LEVEL:
        left = f"Against guessing, after Holm's adjustment over the rivals at a lead, p = {p}."
    else:
        left = f"Nothing of that survives Holm's adjustment over the rivals at a lead: against guessing, p = {p}."
    return (
        f"`{name}` is a **reversed signal**: AUROC {areas} ahead. It is lower in runs that fail; 1 minus it is "
        f"{turned}. The direction was chosen after the outcomes were known. {left}"
    )


def _against_chance(row: Mapping[Any, Any]) -> str:
    if row["low"] <= CHANCE <= row["high"]:
        return "Guessing is 0.5, and the interval holds it: ESS is not shown to know more than a guess."
    return "Guessing is 0.5, and the interval does not hold it."


def _area(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["auroc"]):
        return "too few configurations"
    return f"{number(row['auroc'])} [{number(row['low'])}, {number(row['high'])}]"


def _by_verdict(verdicts: Mapping[str, str]) -> str:
    named: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        named.setdefault(verdict, []).append(f"`{name}`")
    return "; ".join(f"*{verdict}*: {', '.join(names)}" for verdict, names in named.items())


def null_sentence(nulls: pd.DataFrame) -> str:
    """What is left of the AUROC of ESS when its series are permuted among the seeds of each configuration.

    Args:
        nulls: The table `nulls` of `vcpo-bench analyze prediction`.
    """
    rows = nulls[(nulls["signal"] == PRIMARY) & (nulls["null"] == WITHIN)]
    if rows.empty:
        return f"Too few runs have a landmark {LEAD_OF_NULLS} updates ahead."
    row = rows.iloc[0]
    if row["p"] < 0.05:
        verdict = "So ESS says something of the seed that its configuration does not."
    else:
        verdict = "So it is not shown that ESS says more of a seed than its configuration does."
    value, mean, low, high, p = (number(row[name]) for name in ("value", "null_mean", "null_low", "null_high", "p"))
    return (
        f"Exploratory. {LEAD_OF_NULLS} updates ahead, against runs of the same task and lag whatever their method, ESS "
        f"has AUROC {value}. When its series are permuted among the seeds of each configuration, it has {mean} "
        f"[{low}, {high}] (95% of {DRAWS} draws), one-sided p = {p}. {verdict}"
    )
