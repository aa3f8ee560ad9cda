"""Alarms on held-out seeds at one operating point: what they announce, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.calibration import Rate
from vcpo_bench.analysis.prediction.alarm_outcomes import Outcomes, clock
from vcpo_bench.analysis.prediction.clusters import clustered_ratio, clustered_share
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel
from vcpo_bench.analysis.prediction.thresholds import cross_fitted, folds

MEASURED = "measured"
_RATES = ("recall", "healthy_alarmed", "false_per_1000")
NUMBERS = (*(f"{name}{end}" for name in _RATES for end in ("", "_low", "_high")), "lead_median")
"""Columns that are not given where there are too few runs."""


def alarms_table(panel: Panel) -> pd.DataFrame:
    """Every recorded signal, tuned on training seeds to alarm in at most 1 of 10 healthy runs; empty with one seed.

    Columns: `signal`, `n_collapsed`, `n_healthy`; `recall` (failures announced in time), `healthy_alarmed` (share of
    the runs that never fail but are alarmed), `false_per_1000` (false alarms per 1,000 healthy updates), each with
    `_low` and `_high` (95%, by configuration); `lead_median` (of the announced, in updates); `verdict`. With too few
    runs all but the counts is NaN.
    """
    time, parts = clock(panel), folds(panel)
    names = panel.recorded() if parts else []
    rows = [{"signal": name} | _summary(cross_fitted(panel, time, name, parts), panel) for name in names]
    return pd.DataFrame(rows, columns=["signal", "n_collapsed", "n_healthy", *NUMBERS, "verdict"])


def _summary(result: Outcomes, panel: Panel) -> dict[str, Any]:
    failed, healthy = result.known & panel.failed, result.known & panel.healthy
    row: dict[str, Any] = {"n_collapsed": int(failed.sum()), "n_healthy": int(healthy.sum())}
    if not panel.enough(np.flatnonzero(failed), np.flatnonzero(healthy)):
        return row | dict.fromkeys(NUMBERS, np.nan) | {"verdict": TOO_FEW}
    known, unit = result.known, panel.cluster
    rates = (
        clustered_share(result.caught[failed], unit[failed]),
        clustered_share((result.false > 0)[healthy], unit[healthy]),
        clustered_ratio(result.false[known], result.exposure[known], unit[known], 1000.0),
    )
    for name, rate in zip(_RATES, rates, strict=True):
        row |= zip((name, f"{name}_low", f"{name}_high"), rate or Rate(np.nan, np.nan, np.nan), strict=True)
    leads = result.lead[failed & result.caught]
    return row | {"lead_median": float(np.median(leads)) if leads.size else np.nan, "verdict": MEASURED}
