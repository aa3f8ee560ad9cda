"""Pareto k-hat of log-weights: the shape of a generalized Pareto law fitted to their upper tail.

The profile method of Zhang and Stephens (2009) with the weak prior toward 1/2 of Vehtari et al. (arXiv 1507.02646).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALLEST_TAIL = 5
_PRIOR_K, _PRIOR_WEIGHT = 0.5, 10.0
_PRIOR_SCALE = 3.0


def tail_length(n: int) -> int:
    """Size of the fitted tail: n/5 up to 225 draws, 3 sqrt(n) above, rounded down."""
    return int(3 * np.sqrt(n)) if n > 225 else n // 5


def pareto_k(log_w: Array) -> Array:
    """K-hat of each row of log-weights.

    Args:
        log_w: Shape [..., n], finite, or `-inf` for a weight of zero.

    Returns:
        Shape [...]; NaN where n < 25 (fewer than five tail values), the tail is constant (on-policy data, or weights
        tied at a cap) or the input is not finite.
    """
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
