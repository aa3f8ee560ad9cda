"""When is a run said to have collapsed? Written, mechanical rules; the first is the scoreboard's."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

WINDOW = 20
PATIENCE = 30


def trailing_mean(values: ArrayLike, window: int) -> NDArray[np.float64]:
    """Mean of the last ``window`` values at each position, fewer at the beginning; non-finite values are left out.

    Args:
        values: series of shape [S].
        window: number of values.

    Returns:
        Shape [S]; NaN where the window holds no finite value.
    """
    series = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(series)
    total = np.concatenate([[0.0], np.cumsum(np.where(finite, series, 0.0))])
    count = np.concatenate([[0], np.cumsum(finite)])
    end = np.arange(1, series.size + 1)
    begin = np.maximum(end - window, 0)
    number = count[end] - count[begin]
    return np.where(number > 0, (total[end] - total[begin]) / np.maximum(number, 1), np.nan)


def first_long_streak(flags: ArrayLike, length: int) -> int | None:
    """Position of the first of ``length`` consecutive True values, or None."""
    flag = np.asarray(flags, dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flag, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    long = starts[ends - starts >= length]
    return int(long[0]) if long.size else None


def training_collapse_onset(sampled_reward: ArrayLike, start: float | None = None) -> int | None:
    """The scoreboard's rule: onset of collapse in the reward the current policy samples, or None.

    The trailing mean of 20 updates is below half of max(start, best so far) for 30 consecutive updates and also at the
    last update. ``start`` is the start policy's reward (the first evaluation); without it, the first full window.

    Args:
        sampled_reward: series of shape [S], one value per update.
        start: reward of the start policy.

    Returns:
        Index of the first update of the first such streak.
    """
    mean = trailing_mean(sampled_reward, WINDOW)
    if mean.size < WINDOW + PATIENCE or not np.isfinite(mean).any():
        return None
    mean[: WINDOW - 1] = np.nan
    floor = start if start is not None and np.isfinite(start) else mean[WINDOW - 1]
    best = np.fmax(np.fmax.accumulate(mean), floor)
    below = mean < 0.5 * best
    return first_long_streak(below, PATIENCE) if below[-1] else None
