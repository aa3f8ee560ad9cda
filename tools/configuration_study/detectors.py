"""What the packaged detectors do in runs of studies that did not tune them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY, measure
from vcpo_bench.analysis.calibrating.runs import study_of_results
from vcpo_bench.analysis.calibrating.tune import Material
from vcpo_bench.analysis.monitoring.calibration import load_calibrations
from vcpo_bench.analysis.prediction.alarm_outcomes import clock
from vcpo_bench.analysis.results import Results

from .design import ALL, LEAST_LAG, PROMISE


def detector_table(name: str, results: Results) -> pd.DataFrame:
    """One row per task, all of them included, and detector, any of them included.

    Columns: `study`, `task`, those of `analysis.calibrating.judge.judge`, and `verdict` (of any detector on all tasks).
    """
    detectors = [one.detector for one in load_calibrations()]
    tables = []
    for task, some in _by_task(lagged(results)):
        study = study_of_results(some, name)
        table = measure(Material(study, clock(study.panel), {}, {}), detectors)
        verdicts = [_kept(row, task) for row in table.to_dict("records")]
        tables.append(table.assign(study=name, task=task, verdict=verdicts))
    whole = pd.concat(tables, ignore_index=True)
    first = ["study", "task"]
    return whole[[*first, *(column for column in whole if column not in first)]]


def lagged(results: Results) -> Results:
    """The runs at a lag of `LEAST_LAG` or more."""
    cells = results.cells
    return results.select(cells.loc[cells["staleness"] >= LEAST_LAG, "key"])


def _by_task(results: Results) -> Iterator[tuple[str, Results]]:
    yield ALL, results
    tasks = sorted(set(results.cells["task"]))
    for task in tasks if len(tasks) > 1 else ():
        yield task, results.select(results.cells.loc[results.cells["task"] == task, "key"])


def _kept(row: dict[str, object], task: str) -> str:
    if row["signal"] != ANY or task != ALL:
        return ""
    low, high = float(str(row["healthy_alarmed_low"])), float(str(row["healthy_alarmed_high"]))
    if np.isnan(low):
        return "too few"
    return "kept" if high < PROMISE else "broken" if low > PROMISE else "undecided"
