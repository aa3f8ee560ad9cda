"""Intervals and tests for a handful of seeds, and from how many on they are shown.

The distributions are those of `scipy.special`: `scipy.stats` takes a second to import and calls the same functions.
`import scipy` puts off even that until one is called: a figure needs none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.tolerance import EQUAL

Array = NDArray[np.float64]

LEVEL = 0.05
"""Of every test: a difference is only called one below it."""
ENOUGH = 6
"""Runs, or pairs of runs, from which on an interval or a test over them is shown, in every table and sentence.

With fewer, an exact paired test cannot reach `LEVEL`, and a bootstrap interval covers far less than it claims: of a
normal mean, a 95% interval covers 75% of the time with 3 seeds, and 84% with 5.
"""

_EXACT_FLIPS = 14
_RANDOM_FLIPS = 20_000


def t_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Student-t interval of the mean over seeds; (NaN, NaN) with fewer than two finite values.

    Args:
        values: One per seed, shape [n].
        level: Of the interval.
    """
    finite = _finite(values)
    if finite.size < 2:
        return (float("nan"), float("nan"))
    half = scipy.special.stdtrit(finite.size - 1, 0.5 + level / 2) * finite.std(ddof=1) / np.sqrt(finite.size)
    return (float(finite.mean() - half), float(finite.mean() + half))


def reward_interval(values: ArrayLike) -> tuple[float, float]:
    """`t_interval` of `ENOUGH` rewards; where all lie within [0, 1], so does their mean: the interval ends there."""
    if _finite(values).size < ENOUGH:
        return (float("nan"), float("nan"))
    return within_unit(_finite(values), *t_interval(values))


def within_unit(values: ArrayLike, low: float, high: float) -> tuple[float, float]:
    """An interval of a mean of rewards, cut at 0 and 1 where all rewards lie between them; NaN stays NaN."""
    rewards = _finite(values)
    if rewards.size and rewards.min() >= -EQUAL and rewards.max() <= 1 + EQUAL:
        return (float(np.maximum(low, 0.0)), float(np.minimum(high, 1.0)))
    return (low, high)


def wilson(count: int, total: int) -> tuple[float, float]:
    """95% Wilson score interval of a share: 0 of 5 only means that it is below 0.43. (NaN, NaN) for a total of 0."""
    if total == 0:
        return (float("nan"), float("nan"))
    return wilson_of_share(count / total, total)


def wilson_of_share(share: float, total: float) -> tuple[float, float]:
    """95% Wilson score interval of a share of so many runs, which need not be a whole number."""
    z = float(scipy.special.ndtri(0.975))
    weight = z * z / total
    center = (share + weight / 2) / (1 + weight)
    half = z * float(np.sqrt(share * (1 - share) / total + weight / (4 * total))) / (1 + weight)
    return (0.0 if share == 0 else max(center - half, 0.0)), (1.0 if share == 1 else min(center + half, 1.0))


def stratified_t(
    strata: Sequence[ArrayLike], level: float = 0.95, widen: float = 1.0
) -> tuple[float, float, float, float]:
    """Mean of the strata's means with a Student-t interval from the spread within strata, and its two-sided p
    against 0.

    Strata may differ in size and spread: the degrees of freedom are those of Welch and Satterthwaite,
    `(sum v)^2 / sum (v^2 / (n - 1))` with v the squared standard error of each stratum's mean.

    Args:
        strata: One array of (paired) differences per stratum, of shape [seeds]; empty ones are left out.
        level: Of the interval.
        widen: Factor for the standard error, where values are known not to be independent.

    Returns:
        Estimate, low, high, p; the last three are NaN where a stratum has a single value. Where no stratum has any
        spread, p is that of flipping signs, since the t test would be certain of anything.
    """
    kept = [values for values in map(_finite, strata) if values.size]
    if not kept:
        return math.nan, math.nan, math.nan, math.nan
    mean = float(np.mean([values.mean() for values in kept]))
    if min(values.size for values in kept) < 2:
        return (mean, float("nan"), float("nan"), float("nan"))
    squared = np.array([values.var(ddof=1) / values.size for values in kept])
    error = float(widen * np.sqrt(squared.sum()) / len(kept))
    if error <= EQUAL:
        return (mean, mean, mean, sign_flip(np.concatenate(kept)))
    share = squared / squared.sum()
    degrees = 1 / sum(one**2 / (values.size - 1) for one, values in zip(share, kept, strict=True))
    half = float(scipy.special.stdtrit(degrees, 0.5 + level / 2) * error)
    return (mean, mean - half, mean + half, float(2 * scipy.special.stdtr(degrees, -abs(mean) / error)))


def sign_flip(differences: ArrayLike) -> float:
    """Two-sided sign-flip permutation p-value of the mean difference: no assumption beyond symmetry.

    Exact up to 14 differences, 20,000 random flips above. With n pairs it cannot be below `2^(1-n)`.

    Args:
        differences: One per pair, shape [n]; those that are not finite are left out.
    """
    finite = _finite(differences)
    if finite.size == 0:
        return float("nan")
    signs = _exact_signs(finite.size) if finite.size <= _EXACT_FLIPS else _random_signs(finite.size)
    extreme = np.abs(signs @ finite) >= abs(finite.sum()) - 1e-12 * np.abs(finite).sum()
    return float(extreme.mean())


@cache
def _exact_signs(number: int) -> Array:
    """All signs of so many differences [2^number, number]: one table serves every test of that size."""
    signs = np.array(list(product((1.0, -1.0), repeat=number)))
    signs.flags.writeable = False
    return signs


@lru_cache(maxsize=1)  # tests of one size follow one another, and a table may take tens of megabytes
def _random_signs(number: int) -> Array:
    """Random signs [_RANDOM_FLIPS, number], the first of which are those that were observed."""
    signs = np.random.default_rng(0).choice((1.0, -1.0), size=(_RANDOM_FLIPS, number))
    signs[0] = 1.0
    signs.flags.writeable = False
    return signs


def holm(p_values: ArrayLike) -> Array:
    """Holm's step-down adjustment of a family of p-values; NaN stays NaN and is not counted in the family.

    Args:
        p_values: Shape [m].

    Returns:
        Adjusted p-values, shape [m].
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if order.size else steps
    return adjusted


def few_runs(runs: int) -> str:
    """What is said where there are fewer than `ENOUGH` runs.

    Args:
        runs: Of the method that has the fewest.
    """
    return (
        f"{runs} {'run' if runs == 1 else 'runs'} per method and lag: intervals and tests are shown from {ENOUGH} on."
    )


def _finite(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]
