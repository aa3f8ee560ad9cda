"""The tables of the direction study: what the direction tells, ESS against it, and whether fates repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from boundary_study.areas import LEADS, PRIMARY_LEAD, area, by_update, own_rows, panel_of, with_landmarks
from boundary_study.by_task import task_table
from boundary_study.design import Place
from boundary_study.tables import SIGNALS, Tables
from boundary_study.verdicts import compared, enough, rival_row, signal_row, told

from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel

from .fates import agreement_table, fate_table, pairs, parting_table
from .tables import EARLIER, NAME, Measured, places

LEAST_PLACES = 6
"""Fewer places than this give no numbers."""


def made(measured: Measured, first: Tables) -> dict[str, pd.DataFrame]:
    """Every table of the page, by name.

    Args:
        measured: Of a complete study.
        first: The tables of the boundary study.
    """
    found, paired = _panels(measured), pairs(measured.tables, first)
    fates = fate_table(paired)
    return {
        "directions": direction_table(found),
        "rival": rival_table(found),
        "tasks": task_table(found, signals=(NAME,)),
        "fates": fates,
        "agreement": agreement_table(fates, paired),
        "partings": parting_table(paired),
        "again": again_table(found, {place: panel_of(first, place, rung) for place, rung in places().items()}),
        "machines": measured.machines,
    }


def _panels(measured: Measured) -> dict[Place, Panel]:
    """The seeds of each place, with the direction among their signals."""
    signals, found = measured.signals(), {}
    for place, rung in places().items():
        panel = panel_of(measured.tables, place, rung)
        more = by_update(panel.runs, own_rows(signals, place, rung), (NAME, EARLIER))
        found[place] = replace(panel, values={**panel.values, **more})
    return found


def direction_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """The direction alone, as `boundary_study.verdicts.signal_table`.

    Returns:
        A row per lead, with a verdict at the primary one, and then one of the direction read one update earlier.
    """
    rows = []
    for name, lead in (*((NAME, lead) for lead in LEADS), (EARLIER, PRIMARY_LEAD)):
        kept = with_landmarks(found, lead)
        row = {"lead": lead, **signal_row(name, area(kept, name, lead), kept, lead, LEAST_PLACES)}
        if (name, lead) == (NAME, PRIMARY_LEAD):
            row["verdict"] = told({**row, "p_holm": row["p"]}) if enough(kept, LEAST_PLACES) else TOO_FEW
        rows.append(row)
    names = ["lead", "signal", "places", "groups", "failed", "survivors", "auroc", "low", "high", "p", "verdict"]
    return pd.DataFrame(rows).reindex(columns=names)


def rival_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """ESS less the direction, paired, as `boundary_study.verdicts.rival_table`."""
    kept = with_landmarks(found, PRIMARY_LEAD)
    row = rival_row(NAME, kept, LEAST_PLACES)
    verdict = compared({**row, "p_holm": row["p"]}) if enough(kept, LEAST_PLACES) else TOO_FEW
    return pd.DataFrame([{**row, "verdict": verdict}])


def again_table(again: Mapping[Place, Panel], first: Mapping[Place, Panel]) -> pd.DataFrame:
    """AUROC of the boundary study's signals at the primary lead, the first time and this time."""
    old, new = with_landmarks(first, PRIMARY_LEAD), with_landmarks(again, PRIMARY_LEAD)
    rows = []
    for name in SIGNALS:
        one, other = (
            signal_row(name, area(kept, name, PRIMARY_LEAD), kept, PRIMARY_LEAD, LEAST_PLACES)["auroc"]
            for kept in (old, new)
        )
        rows.append({"signal": name, "first": one, "again": other, "difference": other - one})
    return pd.DataFrame(rows)
