"""Few samples behind each point: their mean moves with the samples and prompts that it happens to hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.run import Series

Array = NDArray[np.float64]
_MAD_TO_STD = 1.4826

SMALL = 16
"""Samples of a batch so small that the order of its prompts moves its mean as well."""
NOISES = 4.0
"""Standard errors of a difference of means that a fall or a rise must exceed."""
_LIKELY = 2.0
"""Standard errors by which two equal means easily differ."""
_NOTHING = 0.1
_MOST = 200
"""Samples of a value that can be read from the steps between values."""
_LEAST = 10
_POINTS = 3
"""Points that are averaged before two ends are compared."""


def samples_per_value(series: Series) -> int | None:
    """Samples behind one value, read from the steps between values; None where they are many, or not equal.

    Means of n samples that are each 0 or `scale` lie on multiples of `scale / n`.
    """
    _, values = series.finite
    if values.size < _LEAST or values.min() < 0:
        return None
    scale = max(1.0, float(values.max()))
    steps = np.diff(np.unique(np.round(values / scale, 4)))
    if not steps.size:
        return None
    samples = round(1 / max(float(steps.min()), 1 / (2 * _MOST)))
    on_lattice = np.allclose(values / scale * samples, np.round(values / scale * samples), atol=0.02)
    return samples if samples <= _MOST and on_lattice else None


def ends_where_it_began(values: Array, samples: float) -> bool:
    """Whether the last points are above nothing, and not below the first ones by more than the noise of so few samples.

    Args:
        values: Reward between 0 and 1, shape [n].
        samples: Behind one point.
    """
    start, end = float(values[:_POINTS].mean()), float(values[-_POINTS:].mean())
    return end >= max(start - _LIKELY * _standard_error(start, _POINTS * samples), _NOTHING)


def fell_beyond_noise(values: Array, at: int, samples: float | None) -> bool:
    """Whether the points from one on, or the last ones, are below the best before it by more than noise can explain.

    Args:
        values: Reward between 0 and 1, shape [n].
        at: First low point.
        samples: Behind one point; None: not known, so only what neighbors of the curve differ by is noise.
    """
    before = values[: max(at, _POINTS)]
    best = float(np.convolve(before, np.full(_POINTS, 1 / _POINTS), mode="valid").max())
    low = min(float(values[at : at + _POINTS].mean()), float(values[-_POINTS:].mean()))
    return best - low > NOISES * _noise(values, best, samples)


def rose_beyond_noise(values: Array, samples: float | None) -> bool:
    """Whether the last points are above the first ones by more than noise can explain; as for `fell_beyond_noise`."""
    start, end = float(values[:_POINTS].mean()), float(values[-_POINTS:].mean())
    return end - start > NOISES * _noise(values, end, samples)


def _noise(values: Array, mean: float, samples: float | None) -> float:
    """Standard error of the difference of two means of a few points, the larger of them given."""
    between = scatter(values) * float(np.sqrt(2 / _POINTS))
    return between if samples is None else max(between, _standard_error(mean, _POINTS * samples))


def scatter(values: Array) -> float:
    """Robust standard deviation of one point, from how neighbors differ; shape [n]."""
    return _MAD_TO_STD * float(np.median(np.abs(np.diff(values)))) / float(np.sqrt(2))


def _standard_error(mean: float, samples: float) -> float:
    """Of the difference of two means of so many samples that are 0 or 1."""
    return float(np.sqrt(2 * max(mean * (1 - mean), 0.01) / samples))
