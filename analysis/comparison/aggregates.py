"""Aggregates over seeds and tasks with stratified bootstrap intervals (Agarwal et al. 2021, arXiv 2108.13264).

Scores come as strata: one array of shape [seeds] per stratum (a task at a lag). A replication redraws the seeds
within every stratum, so all strata keep their weight. Everything is vectorized over replications.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.tolerance import EQUAL

Array = NDArray[np.float64]
Strata = Sequence[Array]

REPLICATIONS = 10_000


class BootstrapEstimate(NamedTuple):
    """A point estimate with its 95% percentile-bootstrap interval, which includes it."""

    value: float
    low: float
    high: float


def iqm(scores: Array) -> Array:
    """Interquartile mean over the last axis: a quarter of the values (rounded down) is dropped at each end.

    Args:
        scores: Shape [..., n].

    Returns:
        Shape [...].
    """
    number = scores.shape[-1]
    cut = number // 4
    return np.asarray(np.sort(scores, axis=-1)[..., cut : number - cut].mean(axis=-1))


def optimality_gap(scores: Array) -> Array:
    """How far scores [..., n] fall short of 1 on average, shape [...]; exceeding it does not compensate."""
    return np.asarray(1.0 - np.minimum(scores, 1.0).mean(axis=-1))


def aggregates(strata: Strata, replications: int = REPLICATIONS, seed: int = 0) -> dict[str, BootstrapEstimate]:
    """`iqm`, `mean`, `median` (of the strata's means) and `optimality_gap` with intervals.

    Args:
        strata: One array of finite scores, shape [seeds], per stratum; empty strata are left out.
        replications: Of the bootstrap.
        seed: Of the bootstrap.

    Returns:
        Four estimates; all NaN without any score.
    """
    kept = [np.asarray(stratum, dtype=np.float64) for stratum in strata if len(stratum)]
    functions: dict[str, Callable[[list[Array]], Array]] = {
        "iqm": lambda drawn: iqm(np.concatenate(drawn, axis=-1)),
        "mean": lambda drawn: np.stack([one.mean(axis=-1) for one in drawn]).mean(axis=0),
        "median": lambda drawn: np.median(np.stack([one.mean(axis=-1) for one in drawn]), axis=0),
        "optimality_gap": lambda drawn: optimality_gap(np.concatenate(drawn, axis=-1)),
    }
    if not kept:
        return {name: BootstrapEstimate(np.nan, np.nan, np.nan) for name in functions}
    collected: dict[str, list[Array]] = {name: [] for name in functions}
    for drawn in resamples(kept, replications, seed):
        for name, function in functions.items():
            collected[name].append(function(drawn))
    return {name: _estimate(float(function(kept)), collected[name]) for name, function in functions.items()}


def probability_of_improvement(
    first: Strata, second: Strata, replications: int = REPLICATIONS, seed: int = 0
) -> BootstrapEstimate:
    """P(a run of the first beats a run of the second), ties half, averaged over strata, with its interval.

    Strata that either side lacks are left out. Runs are redrawn independently on both sides.
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if len(a) and len(b)]
    if not pairs:
        return BootstrapEstimate(np.nan, np.nan, np.nan)
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    signs = [_signs(a, b) for a, b in pairs]
    shares = [(one.mean() + 1) / 2 for one in signs]
    drawn = []
    for x, y in zip(_draws(left, replications, seed), _draws(right, replications, seed + 1), strict=True):
        drawn.append(np.stack([_wins(*one) for one in zip(signs, x, y, strict=True)]).mean(axis=0))
    return _estimate(float(np.mean(shares)), drawn)


def performance_profile(
    strata: Strata, thresholds: ArrayLike, replications: int = REPLICATIONS, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Share of runs that score above each threshold, and its pointwise 95% band.

    Args:
        strata: As in `aggregates`.
        thresholds: Shape [K].
        replications: Of the bootstrap.
        seed: Of the bootstrap.

    Returns:
        Share, lower and upper band, each of shape [K]; NaN without any score.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    kept = [np.asarray(stratum, dtype=np.float64) for stratum in strata if len(stratum)]
    if not kept:
        nothing = np.full(levels.shape, np.nan)
        return nothing, nothing, nothing
    share = (np.concatenate(kept)[:, None] > levels + EQUAL).mean(axis=0)
    drawn = [_shares_above(np.concatenate(rows, axis=-1), levels) for rows in resamples(kept, replications, seed)]
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975], axis=0)
    return share, np.minimum(low, share), np.maximum(high, share)


def resamples(strata: Sequence[Array], replications: int, seed: int) -> list[list[Array]]:
    """Chunks of bootstrap draws: each is a list with one array [chunk, seeds] per stratum.

    The chunks keep memory bounded and depend only on `replications`, so that two calls with equal numbers can be
    paired.
    """
    chunks = _draws(strata, replications, seed)
    return [[one[places] for one, places in zip(strata, drawn, strict=True)] for drawn in chunks]


def _draws(strata: Sequence[Array], replications: int, seed: int) -> list[list[NDArray[np.int64]]]:
    """The positions that `resamples` draws: arrays [chunk, seeds], one per stratum."""
    generator = np.random.default_rng(seed)
    chunks = []
    for begin in range(0, replications, 2500):
        size = min(2500, replications - begin)
        chunks.append([generator.integers(len(one), size=(size, len(one))) for one in strata])
    return chunks


def _signs(first: Array, second: Array) -> Array:
    """1 where a run of the first beats one of the second, -1 where it loses, 0 where they tie: [n, m]."""
    difference = first[:, None] - second[None, :]
    return np.asarray(np.sign(np.where(np.abs(difference) <= EQUAL, 0.0, difference)))


def _wins(signs: Array, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
    """Share of the pairs of each draw in which the first is larger, ties half, of shape [R].

    From how often each run was drawn, without the [R, n, m] pairs: all sums are of whole numbers, hence exact.

    `signs` is [n, m] of `_signs`; `first` and `second` are positions drawn from the n and the m runs, [R, n], [R, m].
    """
    balance = ((_counts(first) @ signs) * _counts(second)).sum(axis=-1)
    return np.asarray((balance / signs.size + 1) / 2)


def _counts(places: NDArray[np.int64]) -> Array:
    """How often each of n positions occurs in each row of [R, n]."""
    rows, number = places.shape
    inside = places + number * np.arange(rows)[:, None]
    return np.bincount(inside.ravel(), minlength=places.size).reshape(places.shape).astype(np.float64)


def _shares_above(scores: Array, levels: Array) -> Array:
    """Share of [R, N] scores above each of [K] levels, [R, K], without an [R, N, K] array in memory at once."""
    ordered = np.sort(scores, axis=-1)
    below = np.stack([(ordered <= level + EQUAL).sum(axis=-1) for level in levels], axis=-1)
    return np.asarray(1 - below / scores.shape[-1])


def _estimate(value: float, drawn: list[Array]) -> BootstrapEstimate:
    return BootstrapEstimate(value, *percentile_interval(value, np.concatenate(drawn)))
