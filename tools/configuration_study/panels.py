"""The runs of a study side by side, with methods as units and the learning rate that a run really takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vcpo_bench.analysis.prediction.panel import Panel, build_panel
from vcpo_bench.analysis.results import Results

from .design import LEAST_LAG, RATE, UNIT

BORROWED = "+lr-matched"


def panel_of(results: Results) -> Panel:
    """The panel of the runs at a lag, whose clusters are methods on their tasks."""
    some = lagged(results)
    panel = build_panel(some)
    scales = some.step_columns("step_scale").groupby("key")["step_scale"].mean()
    return with_units(panel, np.asarray(panel.runs["key"].map(scales), dtype=np.float64))


def with_units(panel: Panel, scales: np.ndarray) -> Panel:
    """The panel with methods as clusters, and with the effective learning rate of runs that borrow their step.

    Args:
        panel: With the signal `RATE`, the logarithm of the learning rate before any step scale.
        scales: Mean step scale of each run [N]; constant, and known beforehand, where it is borrowed.
    """
    borrows = panel.runs["method"].str.endswith(BORROWED).to_numpy(dtype=bool)
    taken = panel.values[RATE] + np.where(borrows, np.round(np.log(scales), 5), 0.0)[:, None]
    return replace(panel, values={**panel.values, RATE: taken}, twins=panel.strata(UNIT))


def lagged(results: Results) -> Results:
    """The runs at a lag of `LEAST_LAG` or more."""
    cells = results.cells
    return results.select(cells.loc[cells["staleness"] >= LEAST_LAG, "key"])
