"""Pareto k-hat: how heavy is the upper tail of importance weights?

The fit is `records.pareto_shape`. The input is the log-weight itself, not its negative: with the sign slipped, a
disaster looks perfect. At mini-batch sizes the estimate is mostly noise and prior, so pool a window of updates and
print n and the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_floats
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.records.pareto_shape import SMALLEST_TAIL, tail_length
from vcpo_bench.records.pareto_shape import pareto_k as shape_of_tail

Array = NDArray[np.float64]


class Tail(NamedTuple):
    """A k-hat with what is needed to read it.

    Attributes:
        k: Estimated Pareto shape; NaN where it is not applicable.
        low: Lower end of the 95% bootstrap interval.
        high: Upper end.
        n: How many weights were pooled.
        limit: K above which n weights do not suffice, `min(1 - 1/log10 n, 0.7)`.
        reason: Why k is NaN, or empty.
    """

    k: float
    low: float
    high: float
    n: int
    limit: float
    reason: str


def reliability_limit(n: int) -> float:
    """`min(1 - 1/log10 n, 0.7)`: a k-hat above it says that n draws do not suffice."""
    return float(min(1 - 1 / np.log10(n), 0.7)) if n > 10 else 0.0


def pareto_k(log_weights: ArrayLike) -> Array:
    """`records.pareto_shape.pareto_k` of numbers as a training loop holds them."""
    return shape_of_tail(as_floats(log_weights))


def tail(log_weights: ArrayLike, replications: int = 200, seed: int = 0) -> Tail:
    """K-hat of pooled log-weights [n] with a 95% percentile-bootstrap interval over the weights."""
    log_w = as_floats(log_weights).ravel()
    number = log_w.size
    limit = reliability_limit(number)
    if tail_length(number) < SMALLEST_TAIL:
        return Tail(np.nan, np.nan, np.nan, number, limit, "fewer than 25 weights")
    if np.isnan(log_w).any() or np.isposinf(log_w).any():
        return Tail(np.nan, np.nan, np.nan, number, limit, "weights that are not finite")
    k = float(pareto_k(log_w))
    if np.isnan(k):
        return Tail(k, np.nan, np.nan, number, limit, "constant tail (on policy, or tied at a cap)")
    generator = np.random.default_rng(seed)
    chunk = max(1, min(replications, 2_000_000 // number))
    drawn = [
        pareto_k(log_w[generator.integers(number, size=(chunk, number))]) for _ in range(-(-replications // chunk))
    ]
    return Tail(k, *percentile_interval(k, np.concatenate(drawn)), number, limit, "")
