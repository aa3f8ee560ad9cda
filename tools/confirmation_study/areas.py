"""The numbers beside the statements, without a word: every AUROC, and differences over methods instead of seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from configuration_study.areas import reach

from vcpo_bench.analysis.prediction.landmarks import Comparison, bootstrap_draws
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, Array, Panel

from .design import ELSEWHERE, EVERY, REPLICATIONS, Area
from .judging import both, drawn_seeds, number
from .units import Integers, compared, seeds_of


def areas(panel: Panel) -> pd.DataFrame:
    """One row per AUROC.

    Args:
        panel: Of `units.prepared`, whose clusters are methods on their tasks.

    Returns:
        Columns `signal`, `failures` (whose), `controls`, `failed`, `value`, `low`, `high` (95%, over seeds; NaN with
        one seed), and `methods_low`, `methods_high` (over methods on their tasks; NaN where the failures are of too
        few).
    """
    asked = [area for one in (*EVERY, ELSEWHERE) for area in (one.area, one.less) if isinstance(area, Area)]
    draws, seeds = bootstrap_draws(panel, REPLICATIONS), seeds_of(panel)
    return pd.DataFrame([_row(panel, area, draws, seeds) for area in dict.fromkeys(asked)])


def over_methods(panel: Panel) -> pd.DataFrame:
    """The differences of two signals over all failures, with methods on their tasks as what varies.

    Returns:
        Columns `statement`, `units`, `value`, `low`, `high` (95%). The last row is `ELSEWHERE`.
    """
    draws, rows = bootstrap_draws(panel, REPLICATIONS), []
    for statement in (*EVERY, ELSEWHERE):
        first, second = both(panel, statement)
        units = int(np.unique(panel.cluster[first.case]).size)
        if second is not None and units >= LEAST_CONFIGURATIONS and not statement.area.method:
            found = number(statement, first, second, draws, panel.cluster)
            name = statement.name + ", controls of other seeds" * statement.area.elsewhere
            rows.append({"statement": name, "units": units} | {key: found[key] for key in ("value", "low", "high")})
    return pd.DataFrame(rows)


def _row(panel: Panel, area: Area, draws: Array, seeds: Integers) -> dict[str, Any]:
    found = compared(panel, area)
    value, controls = found.auroc(), "same method" if "method" in area.match else "any method"
    row: dict[str, Any] = {"signal": area.signal, "failures": _whose(area)}
    row |= {"controls": controls + ", other seeds" * area.elsewhere, "failed": int(found.case.size), "value": value}
    row |= dict(zip(("low", "high"), _ends(found, value, drawn_seeds(seeds), seeds, 2), strict=True))
    methods = _ends(found, value, draws, panel.cluster, LEAST_CONFIGURATIONS)
    return row | dict(zip(("methods_low", "methods_high"), methods, strict=True))


def _ends(found: Comparison, value: float, draws: Array, units: Integers, least: int) -> tuple[float, float]:
    """The ends of the t interval over the units that have a failed run, within 0 and 1; NaN with too few of them."""
    known = int(np.unique(units[found.case]).size)
    if known < least:
        return np.nan, np.nan
    half = reach(found.replicates(draws, units), known)
    return max(value - half, 0.0), min(value + half, 1.0)


def _whose(area: Area) -> str:
    """The failed runs, in words."""
    if not area.method:
        return "all"
    return f"{area.task}, all but {area.method}" if area.others else f"{area.task}, {area.method}"
