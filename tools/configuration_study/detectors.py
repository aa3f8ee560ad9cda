"""What the packaged detectors do in runs of configurations that did not tune them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY, measure
from vcpo_bench.analysis.calibrating.runs import study_of_results
from vcpo_bench.analysis.calibrating.tune import Material
from vcpo_bench.analysis.monitoring.calibration import LEAST_RUNS, load_calibrations
from vcpo_bench.analysis.prediction.alarm_outcomes import clock
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, TOO_FEW
from vcpo_bench.analysis.results import Results

from .design import ALL, PROMISE, TUNED
from .panels import lagged

_PLACE = ["task", "method", "staleness"]
_ENDS = ("", "_low", "_high")
Row = dict[Any, Any]


def detector_table(name: str, results: Results) -> pd.DataFrame:
    """One row per task, all of them included, and detector, any of them included.

    Columns: `study`, `updates` (of the longest run), `batch` (trajectories per update), `task`, those of
    `analysis.calibrating.judge.judge`, rates that rest on too few runs or configurations being NaN, and `verdict` (of
    any detector on all tasks).
    """
    detectors = [one.detector for one in load_calibrations()]
    tables = []
    for task, some in _by_task(untuned(lagged(results))):
        study = study_of_results(some, name)
        found = measure(Material(study, clock(study.panel), {}, {}), detectors)
        failed = int(np.unique(study.configuration[study.panel.failed]).size)
        rows = [_enough(row, failed) for row in found.to_dict("records")]
        size = {"updates": study.panel.length, "batch": int((some.cells["prompts"] * some.cells["responses"]).max())}
        rows = [{"study": name} | size | {"task": task} | row for row in rows]
        tables.append(pd.DataFrame([row | {"verdict": _kept(row)} for row in rows]))
    return pd.concat(tables, ignore_index=True)


def untuned(results: Results) -> Results:
    """The runs of configurations that did not tune the detectors, all of which were of regime `fifo`."""
    cells, tuned = results.cells, pd.read_csv(TUNED)
    known = {(*place, f"{lr:.3e}") for *place, lr in tuned[[*_PLACE, "lr"]].itertuples(index=False, name=None)}
    mine = [(*place, f"{lr:.3e}") for *place, lr in cells[[*_PLACE, "lr"]].itertuples(index=False, name=None)]
    tuning = np.array([place in known for place in mine]) & (cells["regime"] == "fifo").to_numpy()
    return results.select(cells.loc[~tuning, "key"])


def _by_task(results: Results) -> Iterator[tuple[str, Results]]:
    yield ALL, results
    tasks = sorted(set(results.cells["task"]))
    for task in tasks if len(tasks) > 1 else ():
        yield task, results.select(results.cells.loc[results.cells["task"] == task, "key"])


def _enough(row: Row, failed: int) -> Row:
    """The row without the rates that rest on too little.

    Args:
        row: Of `judge`.
        failed: Configurations with a failed run.
    """
    healthy = row["n_healthy"] >= LEAST_RUNS and row["configurations"] >= LEAST_CONFIGURATIONS
    lost = row["n_collapsed"] >= LEAST_RUNS and failed >= LEAST_CONFIGURATIONS
    known = {"healthy_alarmed": healthy, "false_per_1000": healthy, "recall": lost}
    return row | {f"{name}{end}": np.nan for name, enough in known.items() if not enough for end in _ENDS}


def _kept(row: Row) -> str:
    if row["signal"] != ANY or row["task"] != ALL:
        return ""
    low, high = row["false_per_1000_low"], row["false_per_1000_high"]
    if np.isnan(low):
        return TOO_FEW
    return "kept" if high < PROMISE else "broken" if low > PROMISE else "undecided"
