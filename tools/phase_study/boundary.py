"""A normal model of values known only to lie between two bounds: what the boundaries of the phase study are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]

RESAMPLES = 200
LEAST_SEEDS = 8
"""With fewer, resampled seeds on a grid of rungs are too few different samples for an interval."""
LEAST_DEVIATION = 0.25
"""Smallest standard deviation of log2 b, in rungs; without one, boundaries that all agree have no likelihood."""
_STARTS = (0.3, 1.0, 3.0)
_ALIKE = 1e-6
"""Log-likelihoods that differ by less do so by chance of rounding: the search ends within 1e-9 of each."""


class Estimate(NamedTuple):
    """An estimate with its profile intervals: where the searched range cuts them off, NaN with an infinite end."""

    value: float
    low: float
    high: float
    low90: float
    high90: float


def estimate(low: Array, high: Array, design: Array, grid: Array) -> Estimate:
    """Maximum likelihood of one coefficient of the mean of interval-censored normal values.

    Args:
        low: `[n]` lower bounds; -inf where there is none.
        high: `[n]` upper bounds; inf where there is none.
        design: `[n]` what the coefficient multiplies. All ones: the mean itself; else there is an intercept as well.
        grid: `[m]` values of the coefficient that are searched, ascending.
    """
    with_intercept = not np.allclose(design, 1.0)
    heights = _profile(low, high, design, grid, with_intercept)
    free = len(low) - 1 - with_intercept
    ends = [_inside(grid, heights, _drop(len(low), free, level)) for level in (0.95, 0.90)]
    return Estimate(_likeliest(grid, heights), *ends[0], *ends[1])


def slopes(low: Array, high: Array, x: Array, weights: Array, grid: Array) -> Array:
    """`[R]` the same model's slope of the mean on x, for R weightings of the values: all at once, on a grid.

    Args:
        low: `[n]` lower bounds, as for `estimate`.
        high: `[n]` upper bounds.
        x: `[n]` what the slope multiplies.
        weights: `[R, n]` how often each value counts.
        grid: `[m]` slopes that are searched.
    """
    axes = (LEAST_DEVIATION * 1.6 ** np.arange(7), np.arange(-2.0, 11.01, 0.2), grid)
    deviation, center, steep = (axis.reshape(-1, 1) for axis in np.meshgrid(*axes))
    mean = center + steep * (x - x.mean())
    heights = _log_mass((low - mean) / deviation, (high - mean) / deviation)
    best = (weights @ np.maximum(heights, -1e6).T).argmax(axis=1)  # 0 times minus infinity would be NaN
    return np.asarray(steep[best, 0])


def resampled(seeds: NDArray[np.int64], random: np.random.Generator) -> Array:
    """`[R, n]` how often each value counts when whole seeds are drawn anew; no rows with fewer than `LEAST_SEEDS`.

    Args:
        seeds: `[n]` seed of each value.
        random: Of the draws.
    """
    _, own = np.unique(seeds, return_inverse=True)
    number = int(own.max()) + 1
    draws = RESAMPLES if number >= LEAST_SEEDS else 0
    return random.multinomial(number, np.full(number, 1 / number), size=draws)[:, own].astype(float)


def _drop(values: int, free: int, level: float) -> float:
    """How far below its maximum the log-likelihood is at the ends of the interval.

    That of a t interval in normal regression, which is what this is but for the width of the bounds; half the
    chi-squared quantile, its limit for many values, covers too little with 18 (88% instead of 95%, simulated).
    """
    if free < 1:
        return float("inf")
    t = float(special.stdtrit(free, 0.5 + level / 2))
    return values / 2 * float(np.log1p(t * t / free))


def _likeliest(grid: Array, heights: Array) -> float:
    """The middle of the values that are as likely as the likeliest; NaN where they reach an end of the grid."""
    best = np.flatnonzero(heights >= heights.max() - _ALIKE)
    return float("nan") if best[0] == 0 or best[-1] == len(grid) - 1 else float(grid[best].mean())


def _inside(grid: Array, heights: Array, drop: float) -> tuple[float, float]:
    """Where the log-likelihood crosses `drop` below its maximum, between two values of the grid."""
    level = heights.max() - drop
    inside = np.flatnonzero(heights >= level)
    first, last = inside[0], inside[-1]
    low = -np.inf if first == 0 else _crossing(grid, heights, first - 1, first, level)
    high = np.inf if last == len(grid) - 1 else _crossing(grid, heights, last + 1, last, level)
    return low, high


def _crossing(grid: Array, heights: Array, outside: int, inside: int, level: float) -> float:
    share = (level - heights[inside]) / (heights[outside] - heights[inside])
    return float(grid[inside] + share * (grid[outside] - grid[inside]))


def _profile(low: Array, high: Array, design: Array, grid: Array, with_intercept: bool) -> Array:
    """`[m]` largest log-likelihood over the deviation, and over the intercept where there is one.

    Each search starts where the one before ended, the first from several places.
    """
    shift = -grid[0] * design
    middle = float(np.median(np.clip(low + shift, -9, 9) / 2 + np.clip(high + shift, -9, 9) / 2))
    tried = [
        _best(low + shift, high + shift, np.array([np.log(spread), middle][: 1 + with_intercept])) for spread in _STARTS
    ]
    point = max(tried, key=lambda found: found[1])[0]
    heights = []
    for value in grid:
        point, height = _best(low - value * design, high - value * design, point)
        heights.append(height)
    return np.array(heights)


def _best(low: Array, high: Array, start: Array) -> tuple[Array, float]:
    """The best deviation (the logarithm of what exceeds the least) and intercept, with their log-likelihood."""

    def loss(point: Array) -> float:
        center = point[1] if len(point) > 1 else 0.0
        deviation = LEAST_DEVIATION + np.exp(np.clip(point[0], -6, 3))
        return -float(_log_mass((low - center) / deviation, (high - center) / deviation).sum())

    # The default simplex is 5% of each coordinate: nothing where one is near 0, and the search would end at once.
    simplex = np.vstack([start, start + 0.5 * np.eye(len(start))])
    found = optimize.minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9, "initial_simplex": simplex}
    )
    return np.clip(found.x, [-6, -np.inf][: len(start)], [3, np.inf][: len(start)]), -float(found.fun)


def _log_mass(low: Array, high: Array) -> Array:
    """Log-probability of a standard normal value between bounds, taken in the tail where it is exact."""
    mirrored = low > 0
    lower, upper = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    above, below = special.log_ndtr(upper), special.log_ndtr(lower)
    with np.errstate(divide="ignore"):
        return np.asarray(above + np.log1p(-np.exp(np.minimum(below - above, 0.0))), dtype=np.float64)
