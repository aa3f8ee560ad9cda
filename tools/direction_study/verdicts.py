"""The tables of the direction study: what the direction tells, ESS against it, and whether fates repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from boundary_study.areas import LEADS, PRIMARY_LEAD, area, by_update, own_rows, panel_of, with_landmarks
from boundary_study.by_task import task_table
from boundary_study.design import Place
from boundary_study.means import over_groups
from boundary_study.tables import FACTS, RUN, SIGNALS, Tables
from boundary_study.verdicts import compared, enough, rival_row, signal_row, told

from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel

from .tables import NAME, Measured, places

LITTLE, NEARLY_ALL = 0.2, 0.8
"""Mean kappa of fates below which nothing of the seed is left, and above which the seed decides."""


def made(measured: Measured, first: Tables) -> dict[str, pd.DataFrame]:
    """Every table of the page, by name.

    Args:
        measured: Of a complete study.
        first: The tables of the boundary study.
    """
    found = _panels(measured)
    fates = fate_table(measured.tables.runs, first.runs)
    return {
        "directions": direction_table(found),
        "rival": rival_table(found),
        "tasks": task_table(found, signals=(NAME,)),
        "fates": fates,
        "agreement": agreement_table(fates, identical(measured.tables.signals, first.signals)),
        "again": again_table(found, {place: panel_of(first, place, rung) for place, rung in places().items()}),
    }


def _panels(measured: Measured) -> dict[Place, Panel]:
    """The seeds of each place, with the direction among their signals."""
    signals, found = measured.signals(), {}
    for place, rung in places().items():
        panel = panel_of(measured.tables, place, rung)
        values = {**panel.values, **by_update(panel.runs, own_rows(signals, place, rung), (NAME,))}
        found[place] = replace(panel, values=values)
    return found


def direction_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """The direction alone, a row per lead, as `boundary_study.verdicts.signal_table`; a verdict at the primary lead."""
    rows = []
    for lead in LEADS:
        kept = with_landmarks(found, lead)
        row = {"lead": lead, **signal_row(NAME, area(kept, NAME, lead), kept, lead)}
        if lead == PRIMARY_LEAD:
            row["verdict"] = told({**row, "p_holm": row["p"]}) if enough(kept) else TOO_FEW
        rows.append(row)
    names = ["lead", "places", "groups", "failed", "survivors", "auroc", "low", "high", "p", "verdict"]
    return pd.DataFrame(rows).reindex(columns=names)


def rival_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """ESS less the direction, paired, as `boundary_study.verdicts.rival_table`."""
    kept = with_landmarks(found, PRIMARY_LEAD)
    row = rival_row(NAME, kept)
    return pd.DataFrame([{**row, "verdict": compared({**row, "p_holm": row["p"]}) if enough(kept) else TOO_FEW}])


def fate_table(again: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    """How the fates of a place's seeds agree, one row per place.

    Args:
        again: Runs of this study.
        first: Runs of the boundary study.

    Returns:
        Columns `task`, `method`, `staleness`, `known` (seeds whose fate is known both times), `first` and `again` (how
        many of them failed), `agree`, `by_chance` (expected to agree if the two were independent) and `kappa`.
    """
    both = again[[*RUN, *FACTS]].merge(first[[*RUN, *FACTS]], on=RUN, suffixes=("_again", "_first"))
    known = both[both["known_again"].astype(bool) & both["known_first"].astype(bool)]
    rows: list[dict[str, Any]] = []
    for place, rung in places().items():
        own = own_rows(known, place, rung)
        old, new = (own[f"failed_{when}"].astype(bool).to_numpy() for when in ("first", "again"))
        chance = float(old.mean() * new.mean() + (1 - old.mean()) * (1 - new.mean()))
        share = float((old == new).mean())
        row: dict[str, Any] = {"task": place.task, "method": place.method, "staleness": place.staleness}
        row |= {"known": len(own), "first": int(old.sum()), "again": int(new.sum()), "agree": int((old == new).sum())}
        kappa = (share - chance) / (1 - chance) if chance < 1 else float("nan")
        rows.append(row | {"by_chance": chance * len(own), "kappa": kappa})
    return pd.DataFrame(rows)


def identical(again: pd.DataFrame, first: pd.DataFrame) -> int:
    """How many runs have the same signals both times, in every digit that ships.

    Args:
        again: Signals of this study's runs, as in `boundary_study.tables.Tables`.
        first: Those of the boundary study.
    """
    both = again.merge(first, on=[*RUN, "update"], how="outer", suffixes=("_again", "_first"), indicator="where")
    same = both["where"] == "both"
    for name in SIGNALS:
        new, old = both[f"{name}_again"], both[f"{name}_first"]
        same &= (new == old) | (new.isna() & old.isna())
    return int(same.groupby([both[name] for name in RUN]).all().sum())


def agreement_table(fates: pd.DataFrame, same: int) -> pd.DataFrame:
    """One row: the sums of `fate_table`, the mean kappa over groups with its t interval, and the verdict.

    Args:
        fates: Of `fate_table`.
        same: Runs that are the same both times.
    """
    kappas = fates[fates["kappa"].notna()].groupby(["task", "method"])["kappa"].mean().to_numpy(np.float64)
    mean = over_groups(kappas, 0.0)
    row = {"identical": same, **{name: fates[name].sum() for name in ("known", "first", "again", "agree")}}
    row |= {"by_chance": fates["by_chance"].sum(), "groups": kappas.size}
    row |= {"kappa": mean.value, "low": mean.low, "high": mean.high}
    return pd.DataFrame([{**row, "verdict": decided(mean.low, mean.high)}])


def decided(low: float, high: float) -> str:
    """What the interval of kappa says."""
    if high < LITTLE:
        return "nothing of the seed is left"
    return "the seed decides" if low > NEARLY_ALL else "part of it"


def again_table(again: Mapping[Place, Panel], first: Mapping[Place, Panel]) -> pd.DataFrame:
    """AUROC of the boundary study's signals at the primary lead, the first time and this time."""
    old, new = with_landmarks(first, PRIMARY_LEAD), with_landmarks(again, PRIMARY_LEAD)
    rows = []
    for name in SIGNALS:
        pair = [
            signal_row(name, area(kept, name, PRIMARY_LEAD), kept, PRIMARY_LEAD)["auroc"] if enough(kept) else np.nan
            for kept in (old, new)
        ]
        rows.append({"signal": name, "first": pair[0], "again": pair[1], "difference": pair[1] - pair[0]})
    return pd.DataFrame(rows)
