"""How well signals rank runs that will fail above those that will not, with the words that were registered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.added_value_of_ess import in_common
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS
from vcpo_bench.analysis.prediction.landmarks import Comparison, RiskSets, bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Array, Flags, Panel

from .design import ALL, BAR, CONTROLS, LEADS, MARGIN, OTHERS, RIVALS, WARMED, WIDE, WITHIN

Row = dict[str, Any]
BARRED = (WIDE, WITHIN)
LATE = "late"
"""Landmarks after the warm-up, with the requested lag reached."""


class Place(NamedTuple):
    """Where a comparison is made: which task, what controls share, how far ahead, and the risk sets there."""

    task: str
    controls: str
    lead: int
    landmarks: str
    sets: RiskSets

    @property
    def names(self) -> Row:
        """All but the risk sets, as columns."""
        return {name: value for name, value in self._asdict().items() if name != "sets"}


def telling(panel: Panel, signals: Sequence[str] | None = None, leads: Sequence[int] = LEADS) -> pd.DataFrame:
    """AUROC of signals, by task, by what controls share, by lead, and of late landmarks alone.

    Args:
        panel: Of `panels.panel_of`.
        signals: Which; None: every one.
        leads: Updates ahead.

    Returns:
        Columns `task` (or `ALL`), `controls`, `lead`, `landmarks` (all or `LATE`), `signal`, `failed` and
        `never_fail` (runs that it rests on), `units` (of the failed runs), `value`, `low`, `high`, and `verdict`: of
        the primary signal, lead and landmarks, for the two kinds of controls that have a bar.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    rows = []
    for place in _places(panel, leads):
        for name in signals or panel.recorded():
            row = place.names | {"signal": name} | area(compare_signal(panel, name, place.sets), panel, draws)
            barred = name == PRIMARY and place.lead == PRIMARY_LEAD and place.landmarks == ALL
            word = _told(row) if barred and place.controls in BARRED else ""
            rows.append(row | {"verdict": TOO_FEW if np.isnan(row["value"]) else word})
    return pd.DataFrame(rows)


def rivals(panel: Panel, among: Iterable[str] = RIVALS) -> pd.DataFrame:
    """ESS less its registered rivals at the primary lead, paired.

    Args:
        panel: Of `panels.panel_of`.
        among: Which kinds of controls.

    Returns:
        Columns `task`, `controls`, `rival`, `failed`, `never_fail`, `units`, `ess`, `its` (AUROC of both), `value`,
        `low`, `high` (95%), `low90`, `high90`, `p`, `p_holm` (over the rivals of one task and kind of controls),
        `verdict`.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    groups = []
    for place in _places(panel, (PRIMARY_LEAD,)):
        if place.landmarks == ALL and place.controls in among:
            names = {"task": place.task, "controls": place.controls}
            rows = [names | {"rival": one} | paired(panel, place.sets, one, draws) for one in RIVALS[place.controls]]
            table = pd.DataFrame(rows)
            groups.append(table.assign(p_holm=holm(table["p"])))
    found = pd.concat(groups, ignore_index=True)
    return found.assign(verdict=[compared(row) for row in found.to_dict("records")])


def unread(panel: Panel) -> pd.DataFrame:
    """Failures by task: `failed`, `too_early` (no landmark), `early` (read in the warm-up or before the lag)."""
    tasks = panel.runs["task"].to_numpy(dtype=object)
    sets = risk_sets(panel, PRIMARY_LEAD)
    rows = []
    for task in (ALL, *sorted(set(tasks))):
        here = np.ones(tasks.size, dtype=bool) if task == ALL else tasks == task
        failed, own = int((panel.failed & here).sum()), here[sets.case]
        early = int((~_late(panel, sets) & own).sum())
        rows.append({"task": task, "failed": failed, "too_early": failed - int(own.sum()), "early": early})
    return pd.DataFrame(rows)


def _places(panel: Panel, leads: Sequence[int]) -> Iterator[Place]:
    tasks = panel.runs["task"].to_numpy(dtype=object)
    for controls, match in CONTROLS.items():
        for lead in leads:
            sets = risk_sets(panel, lead, match)
            for task in (ALL, *sorted(set(tasks))):
                own = sets if task == ALL else sets.among(tasks == task)
                yield Place(task, controls, lead, ALL, own)
                if lead == PRIMARY_LEAD:
                    yield Place(task, controls, lead, LATE, _only(own, _late(panel, own)))
                    if controls == WITHIN:
                        yield Place(task, OTHERS, lead, ALL, _of_other_seeds(panel, own))


def _late(panel: Panel, sets: RiskSets) -> Flags:
    """Which cases are read after the warm-up, with the requested lag reached [C]."""
    lag = panel.runs["staleness"].to_numpy(dtype=np.int64)[sets.case]
    return np.asarray(sets.row + 1 > np.maximum(WARMED, lag))


def _of_other_seeds(panel: Panel, sets: RiskSets) -> RiskSets:
    seed = panel.runs["seed"].to_numpy()
    return RiskSets(sets.case, sets.row, sets.controls & (seed[sets.case][:, None] != seed[None, :]), sets.stratum)


def _only(sets: RiskSets, kept: Flags) -> RiskSets:
    return RiskSets(sets.case[kept], sets.row[kept], sets.controls[kept], sets.stratum[kept])


def area(one: Comparison, panel: Panel, draws: Array) -> Row:
    """`value` (AUROC) with its 95% t interval over the failed units, and the counts it rests on; NaN: too few."""
    row = _counts(one, panel)
    if not panel.enough(*one.runs(panel.healthy)):
        return row | dict.fromkeys(("value", "low", "high"), np.nan)
    value = one.auroc()
    half = reach(one.replicates(draws, panel.cluster), row["units"])
    return row | {"value": value, "low": max(value - half, 0.0), "high": min(value + half, 1.0)}


def paired(panel: Panel, sets: RiskSets, rival: str, draws: Array) -> Row:
    """AUROC of ESS less that of a rival, in the columns of `rivals` but `p_holm` and `verdict`."""
    ess, other = in_common(*(compare_signal(panel, name, sets) for name in (PRIMARY, rival)))
    row = _counts(ess, panel)
    if not panel.enough(*ess.runs(panel.healthy)):
        return row | dict.fromkeys(("ess", "its", "value", "low", "high", "low90", "high90", "p"), np.nan)
    drawn = ess.replicates(draws, panel.cluster) - other.replicates(draws, panel.cluster)
    value, units = ess.auroc() - other.auroc(), row["units"]
    row |= {"ess": ess.auroc(), "its": other.auroc(), "value": value}
    for names, level in ((("low", "high"), 0.95), (("low90", "high90"), 0.9)):
        half = reach(drawn, units, level)
        row |= dict(zip(names, (value - half, value + half), strict=True))
    return row | {"p": _p(value, drawn, units)}


def _counts(one: Comparison, panel: Panel) -> Row:
    failed, never = one.runs(panel.healthy)
    return {"failed": failed.size, "never_fail": never.size, "units": int(np.unique(panel.cluster[failed]).size)}


def error(drawn: Array, units: int) -> float:
    """Standard error from bootstrap replicates, whose variance is too small by one in so many units."""
    return float(np.nanstd(drawn) * np.sqrt(units / (units - 1)))


def reach(drawn: Array, units: int, level: float = 0.95) -> float:
    """Half of the t interval of a value, from bootstrap replicates of so many units."""
    return float(stats.t.ppf((1 + level) / 2, units - 1)) * error(drawn, units)


def _p(value: float, drawn: Array, units: int) -> float:
    se = error(drawn, units)
    return float(2 * stats.t.sf(abs(value) / se, units - 1)) if se > 0 else 1.0


def _told(row: Row) -> str:
    return "can tell" if row["low"] > BAR else "cannot" if row["high"] < BAR else "undecided"


def compared(row: Mapping[Any, Any]) -> str:
    """The registered word for a difference of `rivals`."""
    if np.isnan(row["value"]):
        return TOO_FEW
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    if row["p_holm"] < 0.05 and not row["low"] <= 0 <= row["high"]:
        return "more" if row["value"] > 0 else "less"
    return "undecided"
