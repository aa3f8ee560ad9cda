"""A growing column: its numbers, those that were skipped, and the memory it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np

from vcpo_bench.analysis.float_column import FloatColumn


def test_holds_what_was_put_and_misses_what_was_skipped() -> None:
    """Rows that no block has are NaN: before the first, in between, and after the last."""
    column = FloatColumn()
    column.put(2, np.array([1.0, 2.0]))
    column.put(5, np.array([3.0]))
    np.testing.assert_array_equal(column.whole(7), [np.nan, np.nan, 1, 2, np.nan, 3, np.nan])


def test_grows_over_its_first_room() -> None:
    """Millions of numbers in blocks are those numbers, in the order in which they came."""
    wanted = np.arange(1_000_003, dtype=np.float64)
    column = FloatColumn()
    for begin in range(0, wanted.size, 70_001):
        column.put(begin, wanted[begin : begin + 70_001])
    np.testing.assert_array_equal(column.whole(wanted.size), wanted)


def test_takes_no_second_copy_at_the_end() -> None:
    """`whole` of a full column hands out its own memory."""
    column = FloatColumn()
    column.put(0, np.zeros(500_000))
    tracemalloc.start()
    column.whole(500_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
