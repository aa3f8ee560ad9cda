"""The tail index of the importance weights as a signal, computed from recorded trajectories."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k
from vcpo_bench.analysis.results import Results

TAIL = "k_hat"
"""Name of the signal: Pareto k-hat of the sequence weights recorded in the last `POOLED` updates."""
POOLED = 20
"""Updates whose recorded weights are pooled."""


def tail_indices(results: Results, keys: list[str], length: int) -> NDArray[np.float64]:
    """K-hat of each run at each update [N, S], held until the next recorded one; NaN before the first.

    Args:
        results: The runs.
        keys: Their order.
        length: S.
    """
    values = np.full((len(keys), length), np.nan)
    place = {key: i for i, key in enumerate(keys)}
    for key, samples in results.samples_by_cell():
        if key in place:
            values[place[key]] = _held(samples, length)
    return values


def _held(samples: pd.DataFrame, length: int) -> NDArray[np.float64]:
    steps = samples["step"].to_numpy(dtype=np.int64)
    weights = samples["log_weight"].to_numpy(dtype=np.float64)
    at = np.unique(steps)
    first, last = np.searchsorted(steps, at - POOLED, "right"), np.searchsorted(steps, at, "right")
    found = np.full(at.size, np.nan)
    for number in np.unique(last - first):  # as many weights at once as the windows of one size hold
        alike = np.flatnonzero(last - first == number)
        found[alike] = pareto_k(weights[first[alike, None] + np.arange(number)])
    newest = np.searchsorted(at, np.arange(length), "right") - 1
    return np.where(newest >= 0, found[np.maximum(newest, 0)], np.nan)
