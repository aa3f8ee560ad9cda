"""Effective sample sizes of importance weights, in log space, as fractions of n. None depends on the weights' scale."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_flags, as_floats

Array = NDArray[np.float64]

_BIAS_DRAWS = 1000
_BIAS_GRID = np.linspace(0.0, 7.0, 57) ** 2  # variances of the log-weights, 0 to 49 nats^2


def kish_ess(log_weights: ArrayLike, where: ArrayLike | None = None) -> Array:
    """Kish: `(sum w)^2 / (n sum w^2)`, the ratio VCPO scales its step by (arXiv 2602.17616, section 3.2).

    Args:
        log_weights: Shape [..., n]; `-inf` is a weight of zero.
        where: Shape [..., n], which entries count; None: all.

    Returns:
        Shape [...], in [1/n, 1]; NaN where no entry counts, all weights are zero, or a counted one is NaN or infinite.
    """
    log_w, number = _prepared(log_weights, where)
    return _guard(2 * _log_sum_exp(log_w) - _log_sum_exp(2 * log_w), number)


def entropy_ess(log_weights: ArrayLike, where: ArrayLike | None = None) -> Array:
    """`exp(H(w / sum w)) / n`: the perplexity of the normalized weights. Arguments and result as `kish_ess`."""
    log_w, number = _prepared(log_weights, where)
    log_p = log_w - _log_sum_exp(log_w)[..., None]
    entropy = -np.sum(np.exp(log_p) * np.where(np.isneginf(log_p), 0.0, log_p), axis=-1)
    return _guard(entropy, number)


def max_weight_ess(log_weights: ArrayLike, where: ArrayLike | None = None) -> Array:
    """`1 / (n max(w / sum w))`: the strictest of the three. Arguments and result as `kish_ess`."""
    log_w, number = _prepared(log_weights, where)
    return _guard(_log_sum_exp(log_w) - log_w.max(axis=-1), number)


def gaussian_ess(log_weight_variance: ArrayLike) -> Array:
    """Kish ESS ratio of infinitely many lognormal weights: `exp(-variance)`.

    Args:
        log_weight_variance: In nats squared, any shape.

    Returns:
        The same shape, 0 to 1.
    """
    return np.exp(-as_floats(log_weight_variance))


def kl_ess(length: ArrayLike, kl_k3: ArrayLike) -> Array:
    """What token-level KL and length alone predict: `exp(-2 L K3)`.

    For Gaussian log-weights the variance of the sequence log-weight is about `2 L K3`, with L loss-carrying tokens
    and K3 the KL(mu || theta) per token.

    Args:
        length: L, in tokens, any shape.
        kl_k3: K3, in nats per token, a shape that broadcasts with it.

    Returns:
        The broadcast shape, 0 to 1.
    """
    return gaussian_ess(2 * as_floats(length) * as_floats(kl_k3))


def expected_ess(log_weight_variance: ArrayLike, n: int) -> Array:
    """Median Kish ESS ratio of n lognormal weights: what a batch of n shows, above the limit `exp(-variance)`.

    A batch cannot show the rare large weights it did not draw, so small ESS ratios come out too large: at variance 2.4
    the limit is 0.091 and 512 weights show 0.14. Computed from a fixed set of random draws and interpolated.

    Args:
        log_weight_variance: nats^2, any shape; above 49 it is taken as 49.
        n: Batch size in trajectories.
    """
    variance = np.clip(as_floats(log_weight_variance), 0.0, _BIAS_GRID[-1])
    return np.asarray(np.interp(np.sqrt(variance), np.sqrt(_BIAS_GRID), _bias_table(n)), dtype=np.float64)


@cache
def _bias_table(n: int) -> Array:
    draws = np.random.default_rng(0).standard_normal((max(_BIAS_DRAWS * 128 // max(n, 128), 200), n))
    return np.array([float(np.median(kish_ess(np.sqrt(variance) * draws))) for variance in _BIAS_GRID])


def _prepared(log_weights: ArrayLike, where: ArrayLike | None) -> tuple[Array, NDArray[np.int64]]:
    """Log-weights in float64, uncounted entries at -inf, and the number that count; 0 marks an undefined result."""
    log_w = as_floats(log_weights)
    if log_w.shape[-1] == 0:
        return np.zeros((*log_w.shape[:-1], 1)), np.zeros(log_w.shape[:-1], dtype=np.int64)
    counts = np.ones(log_w.shape, dtype=bool) if where is None else np.broadcast_to(as_flags(where), log_w.shape)
    broken = np.any(counts & (np.isnan(log_w) | np.isposinf(log_w)), axis=-1)
    log_w = np.where(counts & ~broken[..., None], log_w, -np.inf)
    usable = np.any(np.isfinite(log_w), axis=-1)
    log_w = np.where(usable[..., None], log_w, 0.0)
    return log_w, np.where(usable, counts.sum(axis=-1), 0)


def _log_sum_exp(log_w: Array) -> Array:
    """Over the last axis, which holds a finite value."""
    top = log_w.max(axis=-1)
    return np.asarray(top + np.log(np.exp(log_w - top[..., None]).sum(axis=-1)))


def _guard(log_ess: ArrayLike, number: NDArray[np.int64]) -> Array:
    ratio = np.exp(np.where(number > 0, np.asarray(log_ess, dtype=np.float64), np.nan)) / np.maximum(number, 1)
    return np.asarray(np.minimum(ratio, 1.0))
