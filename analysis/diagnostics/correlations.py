"""Correlations of two series within each of thousands of cells, those of one length at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

_AT_ONCE = 1 << 18
"""Numbers of each series that are looked at together: more would take memory, not less time."""


def correlations(x: Array, y: Array, begins: NDArray[np.int64]) -> Array:
    """Spearman's rho and the squared Pearson correlation within each cell.

    Args:
        x: Finite numbers, those of a cell together, shape [R].
        y: Shape [R].
        begins: Row at which each cell begins, shape [C].

    Returns:
        Shape [C, 2]; NaN for a cell with fewer than three rows, or where either series is constant.
    """
    lengths = np.diff(np.append(begins, len(x)))
    found = np.full((len(begins), 2), np.nan)
    for length in np.unique(lengths[lengths >= 3]):
        cells = np.flatnonzero(lengths == length)
        for some in np.array_split(cells, -(-cells.size * length // _AT_ONCE)):
            rows = begins[some][:, None] + np.arange(length)
            found[some] = _of_equal_length(x[rows], y[rows])
    return found


def _of_equal_length(x: Array, y: Array) -> Array:
    varies = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    values = np.column_stack([_pearson(_ranks(x), _ranks(y)), _pearson(x, y) ** 2])
    return np.where(varies[:, None], values, np.nan)


def _pearson(x: Array, y: Array) -> Array:
    """Within each row of [C, S]; NaN or meaningless where one of them is constant."""
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    together, of_x, of_y = (np.einsum("cs,cs->c", *pair) for pair in ((x, y), (x, x), (y, y)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(together / np.sqrt(of_x) / np.sqrt(of_y), -1.0, 1.0))


def _ranks(values: Array) -> Array:
    """Ranks from 1 within each row of [C, S], means where values are equal."""
    return pd.DataFrame(values).rank(axis=1).to_numpy()
