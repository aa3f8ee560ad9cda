"""What the page of the direction study says, in words made from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from boundary_study.areas import PRIMARY_LEAD
from boundary_study.verdicts import BAR, CHANCE

from vcpo_bench.analysis.wording import with_interval

from .fates import UNTESTED
from .tables import NAME


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The registered questions, a line each.

    Args:
        tables: Of `verdicts.made`.
    """
    own = tables["directions"]
    row = own[(own["lead"] == PRIMARY_LEAD) & (own["signal"] == NAME)].iloc[0].to_dict()
    return "\n".join(f"- {line}" for line in (_alone(row), _paired(tables), _fates(tables)))


def _alone(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["auroc"]):
        return f"**The direction, {PRIMARY_LEAD} updates ahead: {row['verdict']}.**"
    area = with_interval(row["auroc"], row["low"], row["high"])
    return (
        f"**The direction, {PRIMARY_LEAD} updates ahead: {row['verdict']}.** AUROC {area} against a bar of {BAR:g}; "
        f"{row['failed']:.0f} failed and {row['survivors']:.0f} surviving seeds of {row['places']:.0f} configurations. "
        f"{_guess(row['low'], row['high'])}"
    )


def _guess(low: float, high: float) -> str:
    if low > CHANCE:
        return "Guessing is 0.5, and the interval lies above it."
    if high < CHANCE:
        return (
            "Guessing is 0.5, and the interval lies below it: a reversed signal, lower in runs that fail. What its "
            "reverse is worth was not asked."
        )
    return "Guessing is 0.5, and the interval holds it: the direction is not shown to know more than a guess."


def _paired(tables: Mapping[str, pd.DataFrame]) -> str:
    row = tables["rival"].iloc[0]
    if pd.isna(row["difference"]):
        return f"ESS less the direction, paired: **{row['verdict']}**."
    gap = with_interval(row["difference"], row["low"], row["high"])
    return (
        f"ESS less the direction, paired, in the same runs: {gap} (**{row['verdict']}**); ESS has AUROC "
        f"{row['ess']:.2f} there."
    )


def _fates(tables: Mapping[str, pd.DataFrame]) -> str:
    row, (failed, parted) = tables["agreement"].iloc[0], tables["partings"][["failed", "parted_before"]].sum()
    same = f"{int(row['identical'])} of {int(row['runs'])} runs are the same in every digit that ships"
    if row["verdict"] == UNTESTED:
        return f"Fates on another processor: *{UNTESTED}*. {same}."
    kappa = with_interval(row["kappa"], row["low"], row["high"])
    return (
        f"**Fates on another processor: {row['verdict']}.** {same}. Of {int(row['known'])} others whose fate is known "
        f"both times, {int(row['agree'])} meet the same one; {row['by_chance']:.0f} would by chance. Kappa {kappa}. "
        f"Of the {failed} runs that failed this time, {parted} had parted from the first training by {PRIMARY_LEAD} "
        "updates before their onset."
    )
