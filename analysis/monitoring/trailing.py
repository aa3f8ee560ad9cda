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
_LEAST_SPREAD = 0.05
"""Smallest standard deviation a z-score divides by, nats of log-norm: a norm that hardly moves must not turn rounding
into alarms."""


def trailing_moments(values: Array, window: int) -> tuple[Array, Array, Array]:
    """Number, mean and standard deviation of the finite values in the window that ends at each position.

    Args:
        values: Shape [S].
        window: Number of positions.

    Returns:
        Three arrays [S].
    """
    finite = np.isfinite(values)
    mean = trailing_mean(values, window)
    center = float(values[finite][0]) if finite.any() else 0.0  # against cancellation; known at every later update
    square = trailing_mean((values - center) ** 2, window) - (mean - center) ** 2
    number = trailing_mean(finite.astype(np.float64), window) * np.minimum(np.arange(1, values.size + 1), window)
    return number, mean, np.sqrt(np.maximum(square, 0.0))


def enough(number: Array) -> NDArray[np.bool_]:
    """Whether at least `LEAST_VALUES` were counted; a count by `trailing_moments` is a float with rounding error."""
    return number >= LEAST_VALUES - 0.5


def z_score(values: Array) -> Array:
    """Each value of a series [S] against the `HISTORY` before it, in their standard deviations; NaN with too few."""
    number, mean, spread = (np.concatenate([[np.nan], one[:-1]]) for one in trailing_moments(values, HISTORY))
    score = (values - mean) / np.maximum(spread, _LEAST_SPREAD)
    return np.where(enough(number), score, np.nan)


def variance(values: Array) -> Array:
    """Variance over the last `REWARD_WINDOW` values of a series [S]; NaN with too few."""
    number, _, spread = trailing_moments(values, REWARD_WINDOW)
    return np.where(enough(number), spread**2, np.nan)


def autocorrelation(values: Array) -> Array:
    """Lag-1 autocorrelation over the last `REWARD_WINDOW` values of a series [S]; NaN with too few or constant ones."""
    before = np.concatenate([[np.nan], values[:-1]])
    number, first, spread_first = trailing_moments(np.where(np.isfinite(values), before, np.nan), REWARD_WINDOW)
    _, second, spread_second = trailing_moments(np.where(np.isfinite(before), values, np.nan), REWARD_WINDOW)
    product = trailing_mean(before * values, REWARD_WINDOW)
    scale = spread_first * spread_second
    return np.where(enough(number) & (scale > 0), (product - first * second) / scale, np.nan)


def kendall_trend(values: Array) -> Array:
    """Kendall's tau of the last `HISTORY` values of a series [S] against time: 1 where each is above all before it.

    NaN with fewer pairs of finite values than `LEAST_VALUES` values have.
    """
    apart, place = np.arange(1, HISTORY)[:, None], np.arange(values.size)[None, :]
    before = np.where(place >= apart, values[np.maximum(place - apart, 0)], np.nan)
    sign = np.sign(values[None, :] - before)  # of each value against the one so many updates before it
    known = np.isfinite(sign)
    begin = np.maximum(place + 1 - (HISTORY - apart), 0)

    def inside(each: Array) -> Array:
        """`[S]` the sum over all pairs of a window."""
        running = np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0)))
        total: Array = (running[:, 1:] - np.take_along_axis(running, begin, axis=1)).sum(axis=0)
        return total

    agree, pairs = inside(np.where(known, sign, 0.0)), inside(known.astype(np.float64))
    return np.where(pairs >= LEAST_VALUES * (LEAST_VALUES - 1) / 2, agree / np.maximum(pairs, 1), np.nan)


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
