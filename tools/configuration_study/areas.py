"""How well signals rank runs that will fail above those that will not, with the words that were registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.added_value_of_ess import difference, in_common
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS, auroc_row
from vcpo_bench.analysis.prediction.landmarks import RiskSets, bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Array, Panel

from .design import ALL, BAR, CONTROLS, LEADS, MARGIN, RIVALS, SEEDS

Row = dict[str, Any]


def telling(panel: Panel) -> pd.DataFrame:
    """AUROC of every signal, by task, by what controls share, and by lead.

    Columns: `task` (or `ALL`), `controls`, `signal`, `lead`, `n_collapsed`, `n_healthy`, `configurations` (of the
    failed runs), `value`, `low`, `high`, `verdict` (of the primary signal at the primary lead, but where controls are
    seeds of one configuration: that has no bar).
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    rows = []
    for task, controls, lead, sets in _places(panel, LEADS):
        for name in panel.recorded():
            one = compare_signal(panel, name, sets)
            found = auroc_row(one, panel, draws)
            row: Row = {"task": task, "controls": controls, "signal": name, "lead": lead}
            row |= {"n_collapsed": found["n_collapsed"], "n_healthy": found["n_healthy"]}
            row |= {"configurations": np.unique(panel.cluster[one.case]).size}
            row |= {end: found[end] for end in ("value", "low", "high")}
            barred = name == PRIMARY and lead == PRIMARY_LEAD and controls != SEEDS
            few = found["verdict"] == TOO_FEW
            rows.append(row | {"verdict": TOO_FEW if few else _told(row["low"], row["high"]) if barred else ""})
    return pd.DataFrame(rows)


def rivals(panel: Panel) -> pd.DataFrame:
    """ESS less its registered rivals at the primary lead, paired.

    Columns: `task`, `controls`, `rival`, `n_collapsed`, `n_healthy`, `ess`, `its` (AUROC of both), `value`, `low`,
    `high` (95%), `low90`, `high90`, `p`, `p_holm` (over the rivals of one task and kind of controls), `verdict`.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    groups = []
    for task, controls, _, sets in _places(panel, (PRIMARY_LEAD,)):
        names = RIVALS.get(controls, ())
        place = {"task": task, "controls": controls}
        rows = [place | {"rival": name} | _paired(panel, sets, name, draws) for name in names]
        if rows:
            table = pd.DataFrame(rows)
            groups.append(table.assign(p_holm=holm(table["p"]) if "p" in table else np.nan))
    found = pd.concat(groups, ignore_index=True)
    return found.assign(verdict=[_compared(row) for row in found.to_dict("records")])


def _places(panel: Panel, leads: tuple[int, ...]) -> Iterator[tuple[str, str, int, RiskSets]]:
    """Every task and all of them, every kind of controls, every lead, with the risk sets there."""
    tasks = panel.runs["task"].to_numpy(dtype=object)
    for controls, match in CONTROLS.items():
        for lead in leads:
            sets = risk_sets(panel, lead, match)
            for task in (ALL, *sorted(set(tasks))):
                yield task, controls, lead, sets if task == ALL else sets.among(tasks == task)


def _paired(panel: Panel, sets: RiskSets, rival: str, draws: Array) -> Row:
    one, other = (compare_signal(panel, name, sets) for name in (PRIMARY, rival))
    found = difference(one, other, panel, draws)
    counts = {name: found[name] for name in ("n_collapsed", "n_healthy")}
    if found["verdict"] == TOO_FEW:
        return counts | dict.fromkeys(("ess", "its", "value", "low", "high", "low90", "high90", "p"), np.nan)
    one, other = in_common(one, other)
    gap = one.replicates(draws) - other.replicates(draws)
    low90, high90 = np.quantile(gap[np.isfinite(gap)], [0.05, 0.95])
    row = counts | {"ess": found["with"], "its": found["without"]}
    row |= {name: found[name] for name in ("value", "low", "high")}
    return row | {"low90": min(low90, row["value"]), "high90": max(high90, row["value"]), "p": found["p"]}


def _told(low: float, high: float) -> str:
    return "can tell" if low > BAR else "cannot" if high < BAR else "undecided"


def _compared(row: Row) -> str:
    if np.isnan(row["value"]):
        return TOO_FEW
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "equivalent"
    if row["p_holm"] < 0.05 and not row["low"] <= 0 <= row["high"]:
        return "more" if row["value"] > 0 else "less"
    return "undecided"
