"""ROC curves of matched landmarks: the distribution of the placements whose mean is the AUROC.

The share of its controls that a failed run does not outrank is the rate of false alarms at a threshold that just finds
it. Their distribution function is the ROC curve, adjusted for what cases and controls share (Janes and Pepe, 2009,
doi:10.1093/biomet/asp002), and the area below it is the mean placement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.landmarks import Comparison
from vcpo_bench.analysis.prediction.panel import Array
from vcpo_bench.analysis.tolerance import EQUAL

RATES = np.linspace(0.0, 1.0, 101)
"""Rates of false alarms at which curves are given."""


def roc_curve(comparison: Comparison) -> Array:
    """Share of the failed runs that are found at each rate of false alarms [R]."""
    false_alarms = 1 - comparison.placements()
    return np.asarray((false_alarms[:, None] <= RATES + EQUAL).mean(axis=0))


def roc_band(comparison: Comparison, draws: Array, cluster: NDArray[np.int64]) -> tuple[Array, Array]:
    """Ends [R] of the 95% percentile interval of the curve at each rate, configurations resampled.

    Args:
        comparison: With at least one case.
        draws: How often each run was drawn, shape [B, N].
        cluster: Which runs were drawn together [N].
    """
    mine, share = comparison.drawn_placements(draws, cluster)
    some = mine.sum(axis=1) > 0
    mine, share = mine[some], share[some]
    drawn = [(mine * (1 - share <= rate + EQUAL)).sum(axis=1) / mine.sum(axis=1) for rate in RATES]
    ends = [percentile_interval(value, one) for value, one in zip(roc_curve(comparison), drawn, strict=True)]
    low, high = np.array(ends).T
    return low, high
