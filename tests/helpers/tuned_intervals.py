"""By how much intervals of tuned runs must be widened.

Two methods that are equally good at every learning rate are tuned as `analysis.comparison.best_learning_rate.tune` does
and compared, seed by seed. The widening needed is what makes 95% of the intervals of their difference hold 0. For each
number of seeds and learning rates it is that of the worst of the profiles, drawn again with other noise: the first look
chose it. The constant `CROSS_FIT` is the largest of them, rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from vcpo_bench.analysis.comparison.best_learning_rate import CROSS_FIT

Array = NDArray[np.float64]

SEEDS = (4, 5, 6, 8, 16, 32)
RATES = (2, 3, 4, 5, 6, 8)
AHEAD = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""By how much the best learning rate is ahead, in standard deviations between seeds."""
SHAPES = ("one ahead", "slope", "peak")
"""All others are equal; each is worse than the one before; the middle is best, and both sides fall off."""
STUDIES = 10_000


class Needed(NamedTuple):
    """The widening that a profile needs, and how often two equal methods are called different with `CROSS_FIT`."""

    widening: float
    wrong: float
    shape: str
    ahead: float


def profile(shape: str, rates: int, ahead: float) -> Array:
    """Mean reward at each learning rate, in standard deviations between seeds."""
    place = np.arange(rates)
    far = {"one ahead": np.minimum(place, 1), "slope": place, "peak": abs(place - rates // 2)}[shape]
    return np.asarray(-ahead * far)


def cross_fitted(rewards: Array) -> Array:
    """The reward [..., seeds, rates] of every seed at the rate that is best on the other half, [..., seeds]."""
    half = np.arange(rewards.shape[-2]) % 2
    found = np.empty(rewards.shape[:-1])
    for tested in (0, 1):
        best = rewards[..., half != tested, :].mean(axis=-2).argmax(axis=-1)
        own = rewards[..., half == tested, :]
        found[..., half == tested] = np.take_along_axis(own, best[..., None, None], axis=-1)[..., 0]
    return found


def t_values(means: Array, seeds: int, studies: int, draws: np.random.Generator) -> Array:
    """Of the difference of two equal methods, over the 95% bound of Student's t: above 1, they are told apart."""
    scores = cross_fitted(means + draws.normal(size=(2, studies, seeds, means.size)))
    gap = scores[0] - scores[1]
    error = gap.std(axis=1, ddof=1) / np.sqrt(seeds)
    return np.asarray(abs(gap.mean(axis=1)) / error / special.stdtrit(seeds - 1, 0.975))


def needed(seeds: int, rates: int, studies: int = STUDIES, ahead: Sequence[float] = AHEAD) -> Needed:
    """What the worst profile needs, over simulated studies in which the best rate may be `ahead` by so much."""
    draws = np.random.default_rng([seeds, rates])
    cases = list(product(SHAPES, ahead))
    first = [np.quantile(t_values(profile(shape, rates, by), seeds, studies, draws), 0.95) for shape, by in cases]
    shape, by = cases[int(np.argmax(first))]
    again = t_values(profile(shape, rates, by), seeds, 4 * studies, draws)
    return Needed(float(np.quantile(again, 0.95)), float((again > CROSS_FIT).mean()), shape, by)
