"""Intervals for runs that come in clusters: seeds of one configuration tend to share their fate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.intervals import wilson_of_share
from vcpo_bench.analysis.monitoring.calibration import Rate
from vcpo_bench.analysis.percentile_interval import percentile_interval

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

REPLICATIONS = 2000


def clustered_share(success: Flags | Array, cluster: NDArray[np.int64]) -> Rate | None:
    """A share of runs with its 95% interval; None without runs.

    Wilson's interval with the effective number of runs of Rao and Scott (1992): the number divided by the design
    effect, the variance between clusters over that of independent runs, at least 1. Where no or all runs succeed, the
    design effect cannot be seen, and every cluster counts as one run.

    Args:
        success: Of each run, shape [n]; the mean where a run was judged several times.
        cluster: Number of the cluster of each run, shape [n].
    """
    n = success.size
    if not n:
        return None
    share = float(success.mean())
    _, member = np.unique(cluster, return_inverse=True)
    clusters = int(member.max()) + 1
    if 0 < share < 1 and clusters > 1:
        residual = np.bincount(member, success - share)
        between = clusters / (clusters - 1) * float((residual**2).sum()) / n**2
        effective = n / max(1.0, between / (share * (1 - share) / n))
    else:
        effective = float(clusters)
    low, high = wilson_of_share(share, effective)
    return Rate(share, low, high)


def clustered_ratio(above: Array, below: Array, cluster: NDArray[np.int64], scale: float = 1.0) -> Rate | None:
    """Events per `scale` with the 95% percentile interval of a bootstrap of clusters; None without exposure.

    Args:
        above: Events of each run, shape [n].
        below: Exposure of each run, shape [n].
        cluster: Number of the cluster of each run, shape [n].
        scale: What the rate is per.
    """
    if not below.sum() > 0:
        return None
    _, member = np.unique(cluster, return_inverse=True)
    top, bottom = np.bincount(member, above), np.bincount(member, below)
    drawn = np.random.default_rng(0).multinomial(top.size, np.full(top.size, 1 / top.size), REPLICATIONS)
    total = drawn @ bottom
    ratio = scale * float(above.sum() / below.sum())
    low, high = percentile_interval(ratio, scale * (drawn @ top)[total > 0] / total[total > 0])
    if not above.any():
        high = scale * 3.0 / float(bottom.sum())  # no event at all: the rule of three
    return Rate(ratio, low, high)
