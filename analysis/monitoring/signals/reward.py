"""Signals of the training reward; variance, autocorrelation and their trends are early warnings of tipping points."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, signal
from vcpo_bench.analysis.monitoring.trailing import (
    HISTORY,
    REWARD_WINDOW,
    autocorrelation,
    kendall_trend,
    variance,
)
from vcpo_bench.analysis.series import trailing_mean


@signal("reward")
def reward_low(sampled_reward: Array) -> Array:
    """Training reward is low: -sampled_reward."""
    return -sampled_reward


@signal("reward", memory=None)
def reward_drop(sampled_reward: Array) -> Array:
    """Best trailing mean (20) of the training reward so far, minus the present one."""
    mean = trailing_mean(sampled_reward, REWARD_WINDOW)
    return np.asarray(np.fmax.accumulate(mean, axis=-1) - mean)


@signal("reward", memory=REWARD_WINDOW)
def reward_variance(sampled_reward: Array) -> Array:
    """Variance of the training reward over 20 updates."""
    return variance(sampled_reward)


@signal("reward", memory=REWARD_WINDOW + 1)
def reward_autocorrelation(sampled_reward: Array) -> Array:
    """Lag-1 autocorrelation of the training reward over 20 updates."""
    return autocorrelation(sampled_reward)


@signal("reward", memory=HISTORY + REWARD_WINDOW)
def variance_trend(sampled_reward: Array) -> Array:
    """Kendall's tau of the reward's variance over 50 updates."""
    return kendall_trend(variance(sampled_reward))


@signal("reward", memory=HISTORY + REWARD_WINDOW + 1)
def autocorrelation_trend(sampled_reward: Array) -> Array:
    """Kendall's tau of the reward's autocorrelation over 50 updates."""
    return kendall_trend(autocorrelation(sampled_reward))
