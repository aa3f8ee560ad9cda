"""Statistics of the newest values of a series at each of its positions: nothing from the future."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.series import trailing_mean

Array = NDArray[np.float64]

HISTORY = 50
"""Earlier updates that a z-score compares the newest with, and over which a trend is taken."""
REWARD_WINDOW = 20
"""Updates over which the training reward's mean, variance and autocorrelation are taken."""
LEAST_VALUES = 10
"""Finite values below which none of these statistics is given."""
_ROUNDING = 1e-12
"""A variance below this share of the largest squared deviation so far is that of equal values, up to rounding."""
_LEAST_SPREAD = 0.05
"""Smallest standard deviation a z-score divides by, nats of log-norm: a norm that hardly moves must not turn rounding
into alarms."""


def trailing_moments(values: Array, window: int) -> tuple[Array, Array, Array]:
    """Number, mean and standard deviation of the finite values in the window that ends at each position.

    Args:
        values: Shape [..., S].
        window: Number of positions.

    Returns:
        Three arrays [..., S].
    """
    finite = np.isfinite(values)
    mean = trailing_mean(values, window)
    # Against cancellation: the first finite value, which is known at every later update.
    first = np.take_along_axis(values, finite.argmax(axis=-1)[..., None], axis=-1)
    center = np.where(np.isfinite(first), first, 0.0)
    squares = (values - center) ** 2
    square = trailing_mean(squares, window) - (mean - center) ** 2
    square[square <= _ROUNDING * np.maximum.accumulate(np.where(finite, squares, 0.0), axis=-1)] = 0.0
    length = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    number = trailing_mean(finite.astype(np.float64), window) * length
    return number, mean, np.sqrt(np.maximum(square, 0.0))


def enough(number: Array) -> NDArray[np.bool_]:
    """Whether at least `LEAST_VALUES` were counted; a count by `trailing_moments` is a float with rounding error."""
    return number >= LEAST_VALUES - 0.5


def z_score(values: Array) -> Array:
    """Each value of series [..., S] against the `HISTORY` before it, in their standard deviations; NaN with too few."""
    number, mean, spread = (_later(one) for one in trailing_moments(values, HISTORY))
    score = (values - mean) / np.maximum(spread, _LEAST_SPREAD)
    return np.where(enough(number), score, np.nan)


def variance(values: Array) -> Array:
    """Variance over the last `REWARD_WINDOW` values of series [..., S]; NaN with too few."""
    number, _, spread = trailing_moments(values, REWARD_WINDOW)
    return np.where(enough(number), spread**2, np.nan)


def autocorrelation(values: Array) -> Array:
    """Lag-1 autocorrelation over the last `REWARD_WINDOW` values of series [..., S].

    NaN with too few values or constant ones.
    """
    before = _later(values)
    number, first, spread_first = trailing_moments(np.where(np.isfinite(values), before, np.nan), REWARD_WINDOW)
    _, second, spread_second = trailing_moments(np.where(np.isfinite(before), values, np.nan), REWARD_WINDOW)
    product = trailing_mean(before * values, REWARD_WINDOW)
    scale = spread_first * spread_second
    return np.where(enough(number) & (scale > 0), (product - first * second) / scale, np.nan)


def kendall_trend(values: Array) -> Array:
    """Kendall's tau of the last `HISTORY` values of series [..., S] against time: 1 where each is above all before it.

    NaN with fewer pairs of finite values than `LEAST_VALUES` values have.
    """
    # From one window to the next, the newest value joins the pairs with those between, and the one that leaves takes
    # its pairs with them along. All sums are of whole numbers, so that no rounding adds up.
    joining, leaving = np.zeros((2, 2, *values.shape))  # agreement and number of pairs
    for apart in range(1, min(HISTORY, values.shape[-1])):
        sign = np.sign(values[..., apart:] - values[..., :-apart])
        known = np.isfinite(sign)
        pairs = np.where(known, sign, 0.0), known
        for join, leave, one in zip(joining, leaving, pairs, strict=True):
            join[..., apart:] += one
            leave[..., :-apart] += one
    joining[..., HISTORY:] -= leaving[..., :-HISTORY]
    agree, number = np.cumsum(joining, axis=-1)
    return np.where(number >= LEAST_VALUES * (LEAST_VALUES - 1) / 2, agree / np.maximum(number, 1), np.nan)


def _later(values: Array) -> Array:
    """The value before each position of series [..., S]; NaN at the first."""
    found = np.empty_like(values)
    found[..., :1], found[..., 1:] = np.nan, values[..., :-1]
    return found


def streamed_mean(values: Array, window: int) -> Array:
    """Mean of the last `window` values at each position of the last axis, fewer at the beginning.

    NaN is a missing value and is left out; an infinite value makes the mean infinite while it is in the window. Sums
    run from the oldest to the newest value, as a stream adds them, so that an online detector gets the same bits.

    Args:
        values: Shape [..., S].
        window: Number of positions.

    Returns:
        Shape [..., S]; NaN where the window holds no value, or infinities of both signs.
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    total, number = np.zeros_like(filled), np.zeros_like(filled)
    length = values.shape[-1]
    for back in range(min(window, length) - 1, -1, -1):
        with np.errstate(invalid="ignore", over="ignore"):
            total[..., back:] += filled[..., : length - back]
        number[..., back:] += present[..., : length - back]
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def streamed_mean_at(values: Array, series: ArrayLike, place: ArrayLike, window: int) -> Array:
    """`streamed_mean` at some positions only, to the same bits, without that of all others.

    Args:
        values: Shape [N, S].
        series: Which of the N series, integers of any shape.
        place: Which of the S positions, integers of a shape that broadcasts with it.
        window: Number of positions.

    Returns:
        One mean per series and place, of their common shape.
    """
    run, at = np.broadcast_arrays(np.asarray(series), np.asarray(place))
    total, number = np.zeros(run.shape), np.zeros(run.shape)
    for back in range(min(window, values.shape[-1]) - 1, -1, -1):
        found = values[run, np.maximum(at - back, 0)]
        present = ~np.isnan(found) & (at >= back)
        with np.errstate(invalid="ignore", over="ignore"):
            total += np.where(present, found, 0.0)
        number += present
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
