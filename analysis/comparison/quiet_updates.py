"""Which updates a loaded machine did not slow down, so that times of methods can be compared.

Sampling is the same work whatever the method, so it tells how fast the machine was at that moment: an update counts
where sampling took at most `SLOWER` times the quickest hundredth of all updates with the same sampling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import cell_rows

SLOWER = 1.5
"""Sampling may take so many times what it takes at best."""
LEAST = 10
"""A run with fewer such updates has no time."""

_SAME = ("task", "policy", "model", "device", "dtype", "sampler", "prompts", "responses", "max_response")
"""Settings that say what sampling costs, where they were recorded."""


def quiet_updates(results: Results) -> NDArray[np.bool_]:
    """Which rows of the table of updates were not slowed down; all of a run that recorded no time of sampling."""
    steps, cells = results.step_columns("seconds_sample"), results.cells
    settings = [name for name in _SAME if name in cells]
    work = cells.groupby(settings, sort=False, dropna=False).ngroup().to_numpy()[cell_rows(steps, cells)]
    seconds = steps["seconds_sample"].where(steps["seconds_sample"] > 0)
    best = seconds.groupby(work).transform("quantile", 0.01)
    quiet = seconds.isna() | (seconds <= SLOWER * best)
    runs = quiet.groupby(steps["key"].to_numpy())
    enough = runs.transform("sum") >= runs.transform("size").clip(upper=LEAST)
    return np.asarray(quiet & enough, dtype=bool)
