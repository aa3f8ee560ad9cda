"""Small operations on one series of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_flags, as_floats

if TYPE_CHECKING:  # the monitor needs numpy only
    import pandas as pd


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


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the rows of each cell together and in order of `step`; itself where they already stand so.

    Args:
        table: With columns `key` and `step`.
    """
    keys, begins = beginnings(table)
    falls = np.flatnonzero(np.diff(table["step"].to_numpy()) < 0) + 1
    if len(set(keys)) == len(keys) and np.isin(falls, begins).all():
        return table
    return table.sort_values(["key", "step"], kind="stable")


def beginnings(table: pd.DataFrame) -> tuple[list[str], NDArray[np.int64]]:
    """Keys of the cells of a table whose rows stand together, and where the rows of each begin."""
    keys = table["key"].to_numpy(dtype=object)
    if not len(keys):
        return [], np.array([], dtype=np.int64)
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return [str(key) for key in keys[begins]], begins


def by_key(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each cell in order of `step`, as parts of the table where they already stand so."""
    ordered = in_order(table)
    keys, begins = beginnings(ordered)
    for key, begin, end in zip(keys, begins, np.append(begins, len(ordered))[1:], strict=True):
        yield key, ordered.iloc[begin:end]
