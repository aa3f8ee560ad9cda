"""What detectors do on a grid that tuned none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY, measure, spoken
from vcpo_bench.analysis.calibrating.runs import Study
from vcpo_bench.analysis.calibrating.tune import Material, at_most, tune
from vcpo_bench.analysis.monitoring.calibration import load_calibrations
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.alarm_outcomes import clock, outcomes, placebo
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, Flags

from .grids import FAILING, Grid, Pool

SEVERAL, STRICT, ONE, APART, PACKAGED = "several", "strict", "one", "several, other seeds", "packaged"
TUNED_ON = "calibration"
"""The grid that tuned the packaged detectors."""
SILENT = Detector(PRIMARY, 1, float("inf"), 1)
"""Stands in for no detector at all."""
OF_FAILURES = ("recall", "recall_low", "recall_high", "median_lead", "random")
Row = dict[str, Any]


def judged(grids: Mapping[str, Grid], whole: Pool) -> pd.DataFrame:
    """Any detector on each held-out grid, one row per tuning.

    Columns: `held_out`, `tuning`, `tuned_on`, `parts` (detectors), `detectors`, `n_healthy`, `n_collapsed`,
    `configurations` (of the healthy runs), `healthy_alarmed`, `false_per_1000` and `recall`, each with `_low` and
    `_high` (over configurations of the grid), `median_lead`, `not_failing_alarmed` (share of all runs that do not fail)
    and `random`, the recall of random alarms at the same rate. Only `FAILING` grids have `OF_FAILURES`.
    """
    rows = []
    for name, grid in grids.items():
        for tuning, on, chosen in _tunings(whole, name):
            if chosen is not None:
                row = {"held_out": name, "tuning": tuning, "tuned_on": on, "parts": len(chosen)}
                rows.append(row | rates_on(grid.study, chosen))
    return pd.DataFrame(rows)


def _tunings(whole: Pool, held_out: str) -> Iterator[tuple[str, str, Sequence[Detector] | None]]:
    """Each tuning, with what it chose; None: it has too few runs to tune on."""
    others = whole.tuning(held_out, FAILING)
    yield SEVERAL, "all others", _tuned(whole, others)
    yield STRICT, "all others", at_most(whole.given, others, _by_grid(whole, others))
    for name in FAILING:
        if name != held_out:
            yield ONE, name, _tuned(whole, whole.tuning(held_out, [name]))
    yield APART, "all others", _tuned(whole, whole.tuning(held_out, FAILING, apart=True))
    if held_out != TUNED_ON:
        yield PACKAGED, TUNED_ON, [one.detector for one in load_calibrations()]


def _tuned(whole: Pool, train: Flags) -> list[Detector] | None:
    healthy, failed = train & whole.given.study.healthy, train & whole.given.study.panel.failed
    return tune(whole.given, train) if min(healthy.sum(), failed.sum()) >= LEAST_RUNS else None


def _by_grid(whole: Pool, train: Flags) -> list[Flags]:
    """Healthy training runs of each grid that has enough of them."""
    healthy = train & whole.given.study.healthy
    parts = [healthy & (whole.grid == name) for name in dict.fromkeys(whole.grid)]
    return [one for one in parts if one.sum() >= LEAST_RUNS]


def rates_on(study: Study, chosen: Sequence[Detector]) -> Row:
    """The rates of `judged` on one grid; no detector never fires."""
    time = clock(study.panel)
    detectors = chosen or [SILENT]
    found = measure(Material(study, time, {}, {}), detectors).set_index("signal").loc[ANY]
    alarms = spoken(study, [(detectors, np.ones(len(study.panel.runs), dtype=bool))]).alarms[ANY]
    did = outcomes(np.where(alarms, 1.0, 0.0), 0.5, time)
    calm = study.panel.runs["event"].isin(["healthy", "stall", "transient dip"]).to_numpy()
    row: Row = {"detectors": "; ".join(one.text for one in chosen)}
    row |= {str(name): value for name, value in found.drop(["n_dips", "dips_alarmed"]).items()}
    row["not_failing_alarmed"] = float(np.isfinite(did.first[calm]).mean())
    row["random"] = placebo(did, time, study.panel.failed, study.configuration)[0]
    return row if study.name in FAILING else row | dict.fromkeys(OF_FAILURES, np.nan)
