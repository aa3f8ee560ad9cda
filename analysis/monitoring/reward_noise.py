"""How far a reward falls below its best by chance alone: a batch of few trajectories has a noisy mean.

The best trailing mean of a flat, noisy reward is a lucky one, and the more updates there were, the luckier; the lucky
means of the first updates are of a few values only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.monitoring.signal import Signal
from vcpo_bench.analysis.monitoring.trailing import REWARD_WINDOW
from vcpo_bench.analysis.series import trailing_mean

Array = NDArray[np.float64]

FREE = 20
"""Independent means that count for the trailing means of as many updates as one of them is over."""


def beyond_chance(signal: Signal, values: Array, rewards: Array, threshold: float) -> Array:
    """The values [S] of a signal as its detector hears them: `reward_drop` at most at the threshold within chance.

    A drop counts from means over whole windows, and beyond `drop_by_chance`.

    Args:
        signal: What the detector listens to; others than `reward_drop` stay as they are.
        values: Its value after each update.
        rewards: Mean reward of each update; NaN: not known.
        threshold: That of the detector.
    """
    if signal.name != "reward_drop" or not (values > threshold).any():
        return values
    known = np.isfinite(rewards)
    real = np.concatenate([[False], _is_real(rewards[known], threshold)])[np.cumsum(known)]
    return np.asarray(np.where(real, values, np.minimum(values, threshold)))


def drop_by_chance(rewards: Array) -> Array:
    """How far fewer than one in twenty flat runs as noisy as this one fall below their best mean, by each update [S].

    The mean of W values with a standard deviation s each has s / sqrt(W), and the largest and smallest of n independent
    ones lie about 2 sqrt(2 log n) of these apart. Means over trailing windows overlap: n is `FREE` for each W updates,
    with which the promise holds at any time in runs of 60 to 2,000 updates. The changes from update to update give s,
    so that a trend does not.
    """
    seen = np.arange(1.0, rewards.size + 1)
    squares = np.concatenate([[0.0], np.cumsum(np.diff(rewards) ** 2)])
    spread = np.sqrt(squares / (2 * np.maximum(seen - 1, 1)))
    apart = 2 * np.sqrt(2 * np.log(FREE * np.maximum(seen / REWARD_WINDOW, 1)))
    return np.asarray(apart * spread / np.sqrt(REWARD_WINDOW))


def _is_real(rewards: Array, threshold: float) -> NDArray[np.bool_]:
    means = trailing_mean(rewards, REWARD_WINDOW)
    means[: REWARD_WINDOW - 1] = np.nan
    drop = np.fmax.accumulate(means) - means
    return np.asarray(drop > np.maximum(drop_by_chance(rewards), threshold))
