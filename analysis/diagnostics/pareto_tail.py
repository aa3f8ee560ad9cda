"""Pareto k-hat: how heavy is the upper tail of importance weights?

The generalized Pareto fit is the profile method of Zhang and Stephens (2009) with the weak prior toward 1/2 of
Vehtari et al. (arXiv 1507.02646). The input is the log-weight itself, not its negative: with the sign slipped, a
disaster looks perfect. At mini-batch sizes the estimate is mostly noise and prior, so pool a window of updates and
print n and the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_floats
from vcpo_bench.analysis.percentile_interval import percentile_interval

Array = NDArray[np.float64]

SMALLEST_TAIL = 5
_PRIOR_K, _PRIOR_WEIGHT = 0.5, 10.0
_PRIOR_SCALE = 3.0


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


def tail_length(n: int) -> int:
    """Size of the fitted tail: n/5 up to 225 draws, 3 sqrt(n) above, rounded down."""
    return int(3 * np.sqrt(n)) if n > 225 else n // 5


def reliability_limit(n: int) -> float:
    """`min(1 - 1/log10 n, 0.7)`: a k-hat above it says that n draws do not suffice."""
    return float(min(1 - 1 / np.log10(n), 0.7)) if n > 10 else 0.0


def pareto_k(log_weights: ArrayLike) -> Array:
    """K-hat of each row of log-weights.

    Args:
        log_weights: Shape [..., n], finite, or `-inf` for a weight of zero.

    Returns:
        Shape [...]; NaN where n < 25 (fewer than five tail values), the tail is constant (on-policy data, or weights
        tied at a cap) or the input is not finite.
    """
    log_w = as_floats(log_weights)
    flat = log_w.reshape(-1, log_w.shape[-1])
    length = tail_length(flat.shape[-1])
    if length < SMALLEST_TAIL:
        return np.full(log_w.shape[:-1], np.nan)
    top = np.sort(np.partition(flat, -length - 1, axis=-1)[:, -length - 1 :], axis=-1)
    usable = np.isfinite(top[:, -1]) & ~np.isnan(flat).any(axis=-1)
    weight = np.exp(top - np.where(usable, top[:, -1], 0.0)[:, None])
    excess = np.where(usable[:, None], weight[:, 1:] - weight[:, :1], 0.0)
    return _shape_of(excess).reshape(log_w.shape[:-1])


def _shape_of(excess: Array) -> Array:
    """Generalized Pareto shape of sorted excesses [R, M]; NaN where the quarter point or the spread is zero."""
    number = excess.shape[-1]
    quarter, largest = excess[:, int(number / 4 + 0.5) - 1], excess[:, -1]
    fits = (quarter > 0) & (largest > excess[:, 0])
    safe = np.where(fits[:, None], excess, np.linspace(1.0, 2.0, number))
    grid = 30 + int(np.sqrt(number))
    spread = 1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    theta = spread / (_PRIOR_SCALE * np.where(fits, quarter, 1.0))[:, None] + 1 / safe[:, -1:]
    shape = np.mean(np.log1p(-theta[:, :, None] * safe[:, None, :]), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = number * (np.log(-theta / shape) - shape - 1)
    profile = np.where(np.isfinite(profile), profile, -np.inf)
    weight = np.exp(profile - profile.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    weight = np.where(weight >= 10 * np.finfo(np.float64).eps, weight, 0.0)
    posterior = (theta * weight).sum(axis=-1) / weight.sum(axis=-1)
    fitted = np.mean(np.log1p(-posterior[:, None] * safe), axis=-1)
    shrunk = (number * fitted + _PRIOR_WEIGHT * _PRIOR_K) / (number + _PRIOR_WEIGHT)
    return np.where(fits, shrunk, np.nan)


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
