"""Small operations on one series of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_flags, as_floats

if TYPE_CHECKING:  # the monitor needs numpy only
    import pandas as pd


def trailing_mean(values: ArrayLike, window: int) -> NDArray[np.float64]:
    """Mean of the last `window` values at each position, fewer at the beginning; non-finite values are left out.

    Args:
        values: Series of shape [..., S].
        window: Number of values.

    Returns:
        Shape [..., S]; NaN where the window holds no finite value.
    """
    series = as_floats(values)
    finite = np.isfinite(series)
    total = _within(np.cumsum(np.where(finite, series, 0.0), axis=-1), window)
    number = _within(np.cumsum(finite, axis=-1), window)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _within(running: NDArray[Any], window: int) -> NDArray[Any]:
    """The sum of the last `window` values at each position, from the running sum of all."""
    found = running.copy()
    found[..., window:] -= running[..., :-window]
    return found


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


def spans(ordered: pd.DataFrame) -> Iterator[tuple[str, slice]]:
    """Which rows each cell has in a table from `in_order`."""
    keys, begins = beginnings(ordered)
    for key, begin, end in zip(keys, begins, np.append(begins, len(ordered))[1:], strict=True):
        yield key, slice(int(begin), int(end))


def cell_rows(table: pd.DataFrame, cells: pd.DataFrame) -> NDArray[np.int64]:
    """Which row of `cells` each row of a table belongs to, by its `key`; -1: none of them."""
    keys, begins = beginnings(table)
    found = cells["key"].to_numpy(dtype=object)
    place = {key: row for row, key in enumerate(found)}
    here = np.array([place.get(key, -1) for key in keys], dtype=np.int64)
    return np.repeat(here, np.diff(np.append(begins, len(table))))


def by_key(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each cell in order of `step`, as parts of the table where they already stand so."""
    ordered = in_order(table)
    for key, rows in spans(ordered):
        yield key, ordered.iloc[rows]
