"""Statistics of a random update u against the true gradient g, from inner products of independent batches.

Squared lengths of means are averages over pairs of *different* batches, so that the noise of a batch is never squared:
the same effect as splitting the sample into two independent halves, averaged over all splits. The same holds for g, so
its noise causes no bias. Intervals come from the bootstrap: batches are drawn with replacement, and pairs of the same
batch are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 2000
_TAILS = (0.025, 0.975)


class Products(NamedTuple):
    """Inner products of n updates u_i of one method and of N independent unbiased estimates f_j of g.

    Attributes:
        own: `[n, n]` <u_i, u_j>.
        cross: `[n, N]` <u_i, f_j>.
        truth: `[N, N]` <f_i, f_j>.
    """

    own: Floats
    cross: Floats
    truth: Floats


class ProbeEstimate(NamedTuple):
    """A value with its 95% bootstrap interval; NaN if it is not defined."""

    value: float
    low: float
    high: float


def resampling(batches: int, stream: int) -> Floats:
    """How often each batch counts, `[1 + RESAMPLES, batches]`: once each in the first row, then as the bootstrap draws.

    Args:
        batches: Number of batches.
        stream: Random stream; batches that were sampled together share one, so that methods are compared on the same
            resamples.
    """
    random = np.random.default_rng((batches, stream))
    drawn = random.multinomial(batches, np.full(batches, 1 / batches), size=RESAMPLES)
    return np.concatenate([np.ones((1, batches)), drawn]).astype(np.float64)


def pairs_mean(gram: Floats, weights: Floats) -> Floats:
    """`[R]` mean of `gram[i, j]` over i != j, batch i counting `weights[r, i]` times: unbiased for |E u|^2."""
    squares = np.square(weights)
    total: Floats = (weights @ gram * weights).sum(1) - squares @ np.diag(gram)
    mean_of_pairs: Floats = total / (np.square(weights.sum(1)) - squares.sum(1))
    return mean_of_pairs


def mean(values: Floats, weights: Floats) -> Floats:
    """`[R]` mean of `values[i]`, or of `values[r, i]`."""
    return np.asarray((weights * values).sum(1) / weights.sum(1))


def quantities(products: Products, own: Floats, truth: Floats) -> dict[str, Floats]:
    """Every quantity of `records.PROBES` that follows from inner products, each `[R]`.

    Args:
        products: Inner products of one method.
        own: `[R, n]` how often each update counts.
        truth: `[R, N]` how often each estimate of g counts.
    """
    squares = np.diag(products.own)
    signal = pairs_mean(products.own, own)
    variance = mean(squares, own) - signal
    length = pairs_mean(products.truth, truth)
    along = (own @ products.cross * truth).sum(1) / own.sum(1) / truth.sum(1)  # <E u, g>
    with np.errstate(divide="ignore", invalid="ignore"):
        projections = truth @ products.cross.T / truth.sum(1, keepdims=True)  # [R, n] <u_i, g>
        single = np.where(squares > 0, projections / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
        return {
            "signal_sq": signal,
            "variance": variance,
            "snr": signal / variance,
            "snr_along": along * np.abs(along) / (length * variance),
            "gain": along / length,
            "bias_sq": (signal - 2 * along + length) / length,
            "cosine_of_mean": np.clip(along / np.sqrt(np.maximum(signal * length, 0.0)), -1.0, 1.0),
            "cosine": np.where(length > 0, mean(single, own) / np.sqrt(np.abs(length)), np.nan),
        }


def estimate(resampled: Floats) -> ProbeEstimate:
    """The first of `[1 + RESAMPLES]` values, with the central 95% of the others as its interval."""
    finite = resampled[1:][np.isfinite(resampled[1:])]
    if not np.isfinite(resampled[0]) or not finite.size:
        return ProbeEstimate(np.nan, np.nan, np.nan)
    low, high = np.quantile(finite, _TAILS)
    return ProbeEstimate(float(resampled[0]), float(low), float(high))


def cosine_of_mean(dots: Floats, signal: Floats, norm: float, weights: Floats) -> Floats:
    """`[R]` cosine of E u with a fixed vector.

    Args:
        dots: `[n]` <u_i, vector>.
        signal: `[R]` |E u|^2.
        norm: Length of the vector.
        weights: `[R, n]` how often each update counts.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(mean(dots, weights) / (np.sqrt(np.maximum(signal, 0.0)) * norm), -1.0, 1.0)


def correlation(first: Floats, second: Floats, weights: Floats) -> Floats:
    """`[R]` correlation over batches of two numbers per batch; NaN where one does not vary."""
    one, two = (values - mean(values, weights)[:, None] for values in (first, second))
    norms = mean(one * one, weights) * mean(two * two, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        varies = np.ptp(first) > 0 and np.ptp(second) > 0
        return np.where(varies & (norms > 0), mean(one * two, weights) / np.sqrt(norms), np.nan)
