"""Small operations on one series of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_flags, as_floats


def trailing_mean(values: ArrayLike, window: int) -> NDArray[np.float64]:
    """Mean of the last `window` values at each position, fewer at the beginning; non-finite values are left out.

    Args:
        values: Series of shape [S].
        window: Number of values.

    Returns:
        Shape [S]; NaN where the window holds no finite value.
    """
    series = as_floats(values)
    finite = np.isfinite(series)
    total = np.concatenate([[0.0], np.cumsum(np.where(finite, series, 0.0))])
    count = np.concatenate([[0], np.cumsum(finite)])
    end = np.arange(1, series.size + 1)
    begin = np.maximum(end - window, 0)
    number = count[end] - count[begin]
    return np.where(number > 0, (total[end] - total[begin]) / np.maximum(number, 1), np.nan)


def first_long_streak(flags: ArrayLike, length: int) -> int | None:
    """Position of the first of `length` consecutive True values, or None."""
    flag = as_flags(flags)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flag, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    long = starts[ends - starts >= length]
    return int(long[0]) if long.size else None
