"""How well, and how early, does each signal separate the runs that will fail from those that will not?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy

from vcpo_bench.analysis.intervals import holm, wilson
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.landmarks import Comparison, RiskSets, bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import LEADS, MATCH, PRIMARY_LEAD, TOO_FEW, Array, Panel
from vcpo_bench.analysis.tolerance import EQUAL

REPLICATIONS = 1000
BETTER, WORSE, NOTHING = "better than chance", "points the other way", "cannot be told from chance"
SAME_PLACE, SAME_METHOD, SAME_CONFIGURATION = "task, regime, lag", "and method", "and learning rate"
"""What controls may share with their case."""

_HALF = 0.5
_SCHEMES = {SAME_PLACE: MATCH, SAME_METHOD: (*MATCH, "method"), SAME_CONFIGURATION: (*MATCH, "method", "lr")}

Row = dict[str, Any]


def auroc_table(panels: Iterable[Panel]) -> pd.DataFrame:
    """One row per signal and lead.

    Columns: `signal`, `lead`, `n_collapsed`, `n_healthy`; `value`, `low`, `high` (AUROC with 95% interval,
    configurations resampled), `p` (two-sided, against 1/2), `p_holm` (over all signals and leads but the primary
    endpoint), `verdict`. With too few runs or configurations (`Panel.enough`) the numbers are NaN and the verdict says
    so.

    Args:
        panels: Of the same runs. Each may have other signals, so that one at a time is in memory.
    """
    table = pd.DataFrame(list(_rows(panels))).sort_values(["signal", "lead"], kind="stable", ignore_index=True)
    exploratory = ~((table["signal"] == PRIMARY) & (table["lead"] == PRIMARY_LEAD))
    table["p_holm"] = holm(table["p"].where(exploratory))
    return table


def _rows(panels: Iterable[Panel]) -> Iterator[Row]:
    draws, sets = np.empty((0, 0)), dict[int, RiskSets]()
    for panel in panels:
        if not sets:  # of the runs, whatever the signal
            draws = bootstrap_draws(panel, REPLICATIONS)
            sets = {lead: risk_sets(panel, lead) for lead in LEADS}
        for name in panel.recorded():
            for lead in LEADS:
                yield {"signal": name, "lead": lead} | auroc_row(compare(panel, name, sets[lead]), panel, draws)


def matching_table(panel: Panel) -> pd.DataFrame:
    """AUROC at the primary lead when controls share more with their case.

    Columns: `signal`, `match` (`SAME_PLACE`, the endpoint; `SAME_METHOD`; `SAME_CONFIGURATION`) and those of
    `auroc_row`. Where controls are of the same configuration, only the seeds differ.
    """
    draws, rows = bootstrap_draws(panel, REPLICATIONS), list[Row]()
    for match, columns in _SCHEMES.items():
        sets = risk_sets(panel, PRIMARY_LEAD, columns)
        for name in panel.recorded():
            rows.append({"signal": name, "match": match} | auroc_row(compare(panel, name, sets), panel, draws))
    return pd.DataFrame(rows)


def auroc_row(comparison: Comparison, panel: Panel, draws: Array) -> Row:
    """Counts, AUROC, interval, p and verdict of one comparison; no numbers where there are too few runs."""
    runs = comparison.runs(panel.healthy)
    collapsed, healthy = (one.size for one in runs)
    counts: Row = {"n_collapsed": collapsed, "n_healthy": healthy}
    if not panel.enough(*runs):
        return counts | {"value": np.nan, "low": np.nan, "high": np.nan, "p": np.nan, "verdict": TOO_FEW}
    value, drawn = comparison.auroc(), comparison.replicates(draws, panel.cluster)
    low, high = area_interval(value, drawn, collapsed)
    word = BETTER if low > _HALF else WORSE if high < _HALF else NOTHING
    return counts | {"value": value, "low": low, "high": high, "p": area_p(value, drawn, collapsed), "verdict": word}


def area_interval(value: float, drawn: Array, cases: int) -> tuple[float, float]:
    """95% percentile interval; where every replicate is perfect, Wilson's bound for that many cases instead."""
    low, high = percentile_interval(value, drawn)
    if min(value, 1 - value) <= EQUAL and high - low <= EQUAL:
        return wilson(round(value * cases), cases)
    return low, high


def area_p(value: float, drawn: Array, cases: int) -> float:
    """Two-sided p of an area against 1/2, by its bootstrap standard error.

    A perfect area has no spread over replicates; it is given that of an area of 1 - 1/(2 cases).
    """
    error = float(np.nanstd(drawn))
    if error == 0 and value != _HALF:
        error = float(np.sqrt(0.5 / cases * (1 - 0.5 / cases) / cases))
    return float(2 * scipy.special.ndtr(-abs(value - _HALF) / error)) if error > 0 else 1.0
