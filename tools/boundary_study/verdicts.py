"""The tables of the page: what each signal can tell, ESS against its rivals, leads, places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import LEVEL, holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.auroc import area_p
from vcpo_bench.analysis.prediction.logistic import wald_p
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel

from .alarms import alarm_table
from .areas import LEADS, PRIMARY_LEAD, area, panels, sizes, with_landmarks
from .design import LEAST_PLACES, Place
from .tables import RIVALS, SIGNALS, Tables

BAR = 0.6
"""What an AUROC must exceed to be of use."""
MARGIN = 0.05
"""Largest difference of AUROC that does not matter."""
CAN, CANNOT, UNDECIDED = "can tell", "cannot", "undecided"


def made(tables: Tables) -> dict[str, pd.DataFrame]:
    """Every table of the page, by name."""
    found = panels(tables)
    runs = pd.concat([panel.runs for panel in found.values()])
    return {
        "signals": signal_table(found),
        "rivals": rival_table(found),
        "leads": lead_table(found),
        "places": place_table(found),
        "alarms": alarm_table(runs),
    }


def signal_table(found: Mapping[Place, Panel], lead: int = PRIMARY_LEAD) -> pd.DataFrame:
    """What each signal can tell at a lead.

    Returns:
        Columns `signal`, `places`, `failed`, `survivors`, `auroc`, `low`, `high`, `p` (two-sided, against the bar),
        `p_holm` (over the rivals; ESS is the primary outcome) and `verdict`.
    """
    kept = with_landmarks(found, lead)
    if len(kept) < LEAST_PLACES:
        return pd.DataFrame([{"signal": name, "places": len(kept), "verdict": TOO_FEW} for name in SIGNALS])
    cases, controls = sizes(kept, lead)
    rows: list[dict[str, Any]] = []
    for name in SIGNALS:
        one = area(list(kept.values()), name, lead)
        low, high = percentile_interval(one.value, one.drawn)
        row = {"signal": name, "places": int(np.isfinite(one.each).sum()), "failed": cases, "survivors": controls}
        row |= {"auroc": one.value, "low": low, "high": high, "p": area_p(one.value, one.drawn, cases, null=BAR)}
        rows.append(row)
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p"].where(table["signal"] != PRIMARY))
    return table.assign(verdict=[_told(row) for row in table.to_dict("records")])


def rival_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """ESS less each rival at the primary lead, paired; on seeds whose score by both is known.

    Returns:
        Columns `rival`, `places`, `ess`, `rival_auroc`, `difference`, its 95% and 90% intervals, `p`, `p_holm`,
        `verdict`.
    """
    kept = list(with_landmarks(found, PRIMARY_LEAD).values())
    if len(kept) < LEAST_PLACES:
        return pd.DataFrame([{"rival": name, "places": len(kept), "verdict": TOO_FEW} for name in RIVALS])
    rows: list[dict[str, Any]] = []
    for name in RIVALS:
        ess, rival = area(kept, PRIMARY, PRIMARY_LEAD, also=name), area(kept, name, PRIMARY_LEAD, also=PRIMARY)
        gap = ess.less(rival)
        low, high = percentile_interval(gap.value, gap.drawn)
        low90, high90 = np.nanquantile(gap.drawn, (0.05, 0.95))
        row = {"rival": name, "places": int(np.isfinite(gap.each).sum()), "ess": ess.value, "rival_auroc": rival.value}
        row |= {"difference": gap.value, "low": low, "high": high, "low90": low90, "high90": high90}
        rows.append(row | {"p": wald_p(gap.value, float(np.nanstd(gap.drawn)))})
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p"])
    return table.assign(verdict=[_compared(row) for row in table.to_dict("records")])


def lead_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """AUROC of every signal at every lead, without verdicts; no numbers at a lead with too few places."""
    each = [signal_table(found, lead).assign(lead=lead) for lead in LEADS]
    names = ["lead", "signal", "places", "failed", "survivors", "auroc", "low", "high"]
    return pd.concat(each, ignore_index=True).reindex(columns=names)


def place_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """One row per place: its rate, how its seeds ended, and the AUROC of ESS there."""
    rows = []
    for place, panel in found.items():
        failed = panel.runs["failed"].astype(bool)
        row = {"task": place.task, "method": place.method, "staleness": place.staleness, "lr": panel.runs["lr"].iloc[0]}
        row |= {"failed": int(failed.sum()), "median_onset": panel.runs.loc[failed, "onset"].median()}
        kept = with_landmarks({place: panel}, PRIMARY_LEAD)
        row["ess_auroc"] = area([panel], PRIMARY, PRIMARY_LEAD).value if kept else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def _told(row: Mapping[Any, Any]) -> str:
    decided = row["signal"] == PRIMARY or row["p_holm"] < LEVEL
    if not decided:
        return UNDECIDED
    return CAN if row["low"] > BAR else CANNOT if row["high"] < BAR else UNDECIDED


def _compared(row: Mapping[Any, Any]) -> str:
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    if row["p_holm"] < LEVEL and (row["low"] > 0 or row["high"] < 0):
        return "ESS better" if row["difference"] > 0 else "ESS worse"
    return UNDECIDED
