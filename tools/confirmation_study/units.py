"""The runs of the study, what varies among them, and how failed runs rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from configuration_study.design import RATE
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.landmarks import Comparison, RiskSets, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import Panel

from .design import LEAD, Area

Integers = NDArray[np.int64]
DECIMALS = 3
"""Of the logarithm of the learning rate: runs at one rate tie, whatever a step scale's rounding has left."""


def prepared(panel: Panel) -> Panel:
    """The panel of `configuration_study.panels.panel_of`, with equal learning rates equal."""
    return replace(panel, values={**panel.values, RATE: np.round(panel.values[RATE], DECIMALS)})


def seeds_of(panel: Panel) -> Integers:
    """Number of each run's seed [N], from 0."""
    return np.asarray(np.unique(panel.runs["seed"].to_numpy(), return_inverse=True)[1], dtype=np.int64)


def cases_of(panel: Panel, area: Area) -> RiskSets:
    """The failed runs of an area that can be read, and their controls."""
    sets = risk_sets(panel, LEAD, area.match)
    here = np.ones(sets.case.size, dtype=bool)
    if area.task:
        here &= panel.runs["task"].to_numpy(dtype=object)[sets.case] == area.task
    if area.method:
        here &= (panel.runs["method"].to_numpy(dtype=object)[sets.case] == area.method) != area.others
    controls = sets.controls
    if area.elsewhere:
        seed = seeds_of(panel)
        controls = controls & (seed[sets.case][:, None] != seed[None, :])
    return RiskSets(sets.case[here], sets.row[here], controls[here], sets.stratum[here])


def compared(panel: Panel, area: Area) -> Comparison:
    """How the failed runs of an area rank among their controls."""
    return compare_signal(panel, area.signal, cases_of(panel, area))
