"""Whether the same seeds meet the same fates in two trainings, and when the two part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from boundary_study.areas import PRIMARY_LEAD, own_rows
from boundary_study.design import LEAST_GROUPS
from boundary_study.means import over_groups, perfect_error
from boundary_study.tables import FACTS, RUN, SIGNALS, Tables

from vcpo_bench.analysis.monitoring.signal import PRIMARY

from .tables import places

LITTLE, NEARLY_ALL = 0.2, 0.8
"""Mean kappa below which little of the seed is left, and above which it decides nearly all."""
LEAST_OF_A_FATE = 4
"""Seeds that must meet each fate, both times, for a kappa: if all fail, it is 0 whatever they have in common."""
PARTED = 0.1
"""Difference of two ESS scores (-log of the ESS ratio) from which two trainings have parted."""
UNTESTED = "not tested"
_PAIR = ("_again", "_first")


def pairs(again: Tables, first: Tables) -> pd.DataFrame:
    """The runs of both trainings side by side.

    Args:
        again: Of this study.
        first: Of the boundary study.

    Returns:
        One row per run: `RUN`; `FACTS` of both, ending in `_again` and `_first`; `identical`, whether the signals
        are the same in every digit that ships; and `parted`, the update from which their ESS differs (NaN: none).
    """
    both = again.runs[[*RUN, *FACTS]].merge(first.runs[[*RUN, *FACTS]], on=RUN, suffixes=_PAIR, validate="one_to_one")
    signals = again.signals.merge(
        first.signals, on=[*RUN, "update"], how="outer", suffixes=_PAIR, indicator="where", validate="one_to_one"
    )
    same = signals["where"] == "both"
    for name in SIGNALS:
        new, old = signals[f"{name}_again"], signals[f"{name}_first"]
        same &= (new == old) | (new.isna() & old.isna())
    apart = (signals[f"{PRIMARY}_again"] - signals[f"{PRIMARY}_first"]).abs() > PARTED
    kept = signals[RUN].assign(identical=same, parted=signals["update"].where(apart))
    return both.merge(kept.groupby(RUN).agg({"identical": "all", "parted": "min"}).reset_index(), on=RUN)


def fate_table(paired: pd.DataFrame) -> pd.DataFrame:
    """How fates agree, one row per place, in the runs that are not identical.

    Args:
        paired: Of `pairs`.

    Returns:
        Columns `task`, `method`, `staleness`, `known` (seeds whose fate is known both times), `first` and `again` (how
        many of them failed), `agree`, `by_chance` (expected to agree if the two were independent), `at_most` (can agree
        with so many failures), `kappa`, and of the pairs that part how many there are (`parted`) and how many agree
        (`parted_agree`).
    """
    known = paired["known_again"].astype(bool) & paired["known_first"].astype(bool) & ~paired["identical"]
    rows: list[dict[str, Any]] = []
    for place, rung in places().items():
        own = own_rows(paired[known], place, rung)
        first, again = (int(own[f"failed{which}"].astype(bool).sum()) for which in ("_first", "_again"))
        alike, apart = own["failed_first"].astype(bool) == own["failed_again"].astype(bool), own["parted"].notna()
        agree = int(alike.sum())
        row: dict[str, Any] = {"task": place.task, "method": place.method, "staleness": place.staleness}
        row |= {"known": len(own), "first": first, "again": again, "agree": agree}
        chance = (first * again + (len(own) - first) * (len(own) - again)) / max(len(own), 1)
        row |= {"by_chance": chance, "at_most": len(own) - abs(first - again)}
        rare = min(first, again, len(own) - first, len(own) - again) < LEAST_OF_A_FATE
        row["kappa"] = float("nan") if rare else (agree - chance) / (len(own) - chance)
        rows.append({**row, "parted": int(apart.sum()), "parted_agree": int((alike & apart).sum())})
    return pd.DataFrame(rows)


def agreement_table(fates: pd.DataFrame, paired: pd.DataFrame) -> pd.DataFrame:
    """One row: the sums of `fate_table`, the mean kappa over groups with its t interval, and the verdict.

    Args:
        fates: Of `fate_table`.
        paired: Of `pairs`.
    """
    kappas = fates[fates["kappa"].notna()].groupby(["task", "method"])["kappa"].mean().to_numpy(np.float64)
    counted = ("known", "first", "again", "agree", "by_chance", "at_most", "parted", "parted_agree")
    row: dict[str, Any] = {"runs": len(paired), "identical": int(paired["identical"].sum())}
    row |= {name: fates[name].sum() for name in counted} | {"groups": kappas.size}
    if kappas.size < LEAST_GROUPS:
        return pd.DataFrame([row | dict.fromkeys(("kappa", "low", "high"), float("nan")) | {"verdict": UNTESTED}])
    least_error = 2 * perfect_error(int(row["known"]))  # kappa moves twice as far as the share that agrees
    mean = over_groups(kappas, 0.0, least_error)
    low, high = max(mean.low, -1.0), min(mean.high, 1.0)
    return pd.DataFrame([row | {"kappa": mean.value, "low": low, "high": high, "verdict": decided(low, high)}])


def decided(low: float, high: float) -> str:
    """What the interval of kappa says."""
    if high < LITTLE:
        return "little of the seed is left"
    if low > NEARLY_ALL:
        return "the seed decides nearly all"
    return "the seed decides part of it" if low > LITTLE and high < NEARLY_ALL else "undecided"


def parting_table(paired: pd.DataFrame) -> pd.DataFrame:
    """When the two trainings of a seed part, one row per place.

    Args:
        paired: Of `pairs`.

    Returns:
        Columns `task`, `method`, `staleness`, `runs`, `parted` (how many part before the first onset of the two),
        `median_parting`, `median_onset`, `failed` (this time) and `parted_before` (of these, how many by `PRIMARY_LEAD`
        updates before the onset).
    """
    rows = []
    for place, rung in places().items():
        own = own_rows(paired, place, rung)
        failed = own[own["failed_again"].astype(bool)]
        row: dict[str, Any] = {"task": place.task, "method": place.method, "staleness": place.staleness}
        row |= {"runs": len(own), "parted": int(own["parted"].notna().sum())}
        row |= {"median_parting": own["parted"].median(), "median_onset": failed["onset_again"].median()}
        before = failed["parted"] <= failed["onset_again"] - PRIMARY_LEAD
        rows.append(row | {"failed": len(failed), "parted_before": int(before.sum())})
    return pd.DataFrame(rows)
