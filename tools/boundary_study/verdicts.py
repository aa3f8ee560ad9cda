"""The tables of the page: what each signal can tell, ESS against its rivals, leads, places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.intervals import LEVEL, holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel

from .alarms import alarm_table
from .areas import LEADS, PRIMARY_LEAD, Area, area, panels, sizes, with_landmarks
from .by_task import task_table
from .design import LEAST_GROUPS, LEAST_PLACES, Place
from .means import over_groups, perfect_error
from .tables import RIVALS, SIGNALS, Tables
from .tried import fate_table, tried_table

BAR = 0.6
"""What an AUROC must exceed to be of use."""
CHANCE = 0.5
"""The AUROC of guessing."""
NEAR = (PRIMARY_LEAD, 5)
"""Leads at which signals are also held against guessing."""
MARGIN = 0.05
"""Largest difference of AUROC that does not matter."""
CAN, CANNOT, UNDECIDED = "can tell", "cannot", "undecided"
UNTESTED = "cannot be tested here"
"""Of a signal that is constant in too many places."""


def made(tables: Tables) -> dict[str, pd.DataFrame]:
    """Every table of the page, by name."""
    found = panels(tables)
    runs = pd.concat([panel.runs for panel in found.values()])
    return {
        "signals": signal_table(found),
        "tasks": task_table(found),
        "rivals": rival_table(found),
        "leads": lead_table(found),
        "chance": chance_table(found),
        "places": place_table(found),
        "tried": tried_table(tables.runs),
        "fates": fate_table(runs),
        "alarms": alarm_table(runs),
    }


def enough(places: Iterable[Place], least: int = LEAST_PLACES) -> bool:
    """Whether so many places, of so many groups, give a number."""
    known = list(places)
    return len(known) >= least and len({place.group for place in known}) >= LEAST_GROUPS


def signal_table(found: Mapping[Place, Panel], lead: int = PRIMARY_LEAD) -> pd.DataFrame:
    """What each signal can tell at a lead, mean over groups of places.

    Returns:
        Columns `signal`, `places` where it varies and their `groups`, `failed`, `survivors`, `auroc`, `low`, `high`,
        `p` (two-sided, against the bar), `p_holm` (over the rivals that can be tested; ESS is the primary outcome) and
        `verdict`.
    """
    kept = with_landmarks(found, lead)
    table = pd.DataFrame([signal_row(name, area(kept, name, lead), kept, lead) for name in SIGNALS])
    table["p_holm"] = holm(table["p"].where(table["signal"] != PRIMARY))
    if not enough(kept):
        return table.assign(verdict=TOO_FEW)
    return table.assign(verdict=[told(row) for row in table.to_dict("records")])


def signal_row(
    name: str, one: Area, kept: Mapping[Place, Panel], lead: int, least: int = LEAST_PLACES
) -> dict[str, Any]:
    """The row of one signal in `signal_table`, before the correction over rivals."""
    row: dict[str, Any] = {"signal": name, "places": len(one.known), "groups": one.groups().size}
    if not enough(one.known, least):
        return row | dict.fromkeys(("auroc", "low", "high", "p"), float("nan"))
    cases, controls = sizes({place: kept[place] for place in one.known}, lead)
    mean = over_groups(one.groups(), BAR, perfect_error(cases))
    row |= {"failed": cases, "survivors": controls, "auroc": mean.value}
    return row | {"low": max(mean.low, 0.0), "high": min(mean.high, 1.0), "p": mean.p}


def rival_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """ESS less each rival at the primary lead, paired; on places where both vary, and seeds that have both scores.

    Returns:
        Columns `rival`, `places`, `groups`, `ess`, `rival_auroc`, `difference`, its 95% and 90% intervals, `p`,
        `p_holm`, `verdict`.
    """
    kept = with_landmarks(found, PRIMARY_LEAD)
    table = pd.DataFrame([rival_row(name, kept) for name in RIVALS])
    table["p_holm"] = holm(table["p"])
    if not enough(kept):
        return table.assign(verdict=TOO_FEW)
    return table.assign(verdict=[compared(row) for row in table.to_dict("records")])


def rival_row(name: str, kept: Mapping[Place, Panel], least: int = LEAST_PLACES) -> dict[str, Any]:
    """The row of one signal in `rival_table`, before the correction over rivals."""
    ess, rival = area(kept, PRIMARY, PRIMARY_LEAD, also=name), area(kept, name, PRIMARY_LEAD, also=PRIMARY)
    gap = ess.less(rival)
    row: dict[str, Any] = {"rival": name, "places": len(gap.known), "groups": gap.groups().size}
    if not enough(gap.known, least):
        names = ("ess", "rival_auroc", "difference", "low", "high", "low90", "high90", "p")
        return row | dict.fromkeys(names, float("nan"))
    means = {"ess": ess, "rival_auroc": rival}
    row |= {column: float(one.only(gap.known).groups().mean()) for column, one in means.items()}
    mean = over_groups(gap.groups(), 0.0)
    row |= {"difference": mean.value, "low": mean.low, "high": mean.high}
    return row | {"low90": mean.low90, "high90": mean.high90, "p": mean.p}


def lead_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """AUROC of every signal at every lead, without verdicts; no numbers at a lead with too few places."""
    each = [signal_table(found, lead).assign(lead=lead) for lead in LEADS]
    names = ["lead", "signal", "places", "groups", "failed", "survivors", "auroc", "low", "high"]
    return pd.concat(each, ignore_index=True).reindex(columns=names)


def chance_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """Every rival against guessing at the two nearest leads; Holm's family are the rivals of a lead. Not registered.

    Returns:
        Columns `signal`, `lead`, `auroc`, `p` and `p_holm`; only signals that vary in enough places.
    """
    return pd.concat([_against_chance(found, lead) for lead in NEAR], ignore_index=True)


def _against_chance(found: Mapping[Place, Panel], lead: int) -> pd.DataFrame:
    kept = with_landmarks(found, lead)
    each = {name: one for name in RIVALS if enough((one := area(kept, name, lead)).known)}
    means = [over_groups(one.groups(), CHANCE) for one in each.values()]
    table = pd.DataFrame({"signal": list(each), "lead": lead, "auroc": [one.value for one in means]})
    p = [one.p for one in means]
    return table.assign(p=p, p_holm=holm(p))


def place_table(found: Mapping[Place, Panel]) -> pd.DataFrame:
    """One row per place: its rate, how its seeds ended, and the AUROC of ESS there."""
    rows = []
    for place, panel in found.items():
        failed = panel.runs["failed"].astype(bool)
        row = {"task": place.task, "method": place.method, "staleness": place.staleness, "lr": panel.runs["lr"].iloc[0]}
        row |= {"failed": int(failed.sum()), "median_onset": panel.runs.loc[failed, "onset"].median()}
        kept = with_landmarks({place: panel}, PRIMARY_LEAD)
        row["ess_auroc"] = float(area(kept, PRIMARY, PRIMARY_LEAD).each[0]) if kept else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def told(row: Mapping[Any, Any]) -> str:
    """The verdict on a row of `signal_table`."""
    if row["auroc"] != row["auroc"]:
        return UNTESTED
    if row["signal"] != PRIMARY and not row["p_holm"] < LEVEL:
        return UNDECIDED
    return CAN if row["low"] > BAR else CANNOT if row["high"] < BAR else UNDECIDED


def compared(row: Mapping[Any, Any]) -> str:
    """The verdict on a row of `rival_table`."""
    if row["difference"] != row["difference"]:
        return UNTESTED
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    if row["p_holm"] < LEVEL and (row["low"] > 0 or row["high"] < 0):
        return "ESS better" if row["difference"] > 0 else "ESS worse"
    return UNDECIDED
