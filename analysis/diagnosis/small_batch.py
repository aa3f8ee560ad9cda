"""Few samples behind each point: their mean moves with the prompts that a batch happens to hold."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.logs.run import Series

SMALL = 16
"""Samples of a batch whose mean says little."""
_LEAST = 20
_END = 3
"""Points at the end and at the start that are compared."""


def samples_per_value(series: Series) -> int | None:
    """Samples behind one value, read from the steps between values; None where they are many, or not of 0 or 1."""
    _, values = series.finite
    if values.size < _LEAST or values.min() < 0 or values.max() > 1:
        return None
    return next((n for n in range(2, SMALL + 1) if np.allclose(values * n, np.round(values * n), atol=0.02)), None)


def ends_where_it_began(values: np.ndarray, samples: float) -> bool:
    """Whether the last points are not below the first ones by more than the noise of so few samples.

    Args:
        values: Reward between 0 and 1, shape [n].
        samples: Behind one point.
    """
    start, end = float(values[:_END].mean()), float(values[-_END:].mean())
    noise = np.sqrt(2 * max(start * (1 - start), 0.01) / (_END * samples))
    return bool(end >= start - noise)
