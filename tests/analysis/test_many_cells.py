"""What keeps thousands of cells quick and small: reading ahead, columns that grow, and counted operations."""

from __future__ import annotations

import os
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vcpo_bench.analysis import recorded_tables
from vcpo_bench.analysis.ahead import ahead
from vcpo_bench.analysis.commands.gradients import Gradients
from vcpo_bench.analysis.commands.weights import Weights
from vcpo_bench.analysis.float_column import FloatColumn
from vcpo_bench.analysis.recorded_tables import columns_together
from vcpo_bench.analysis.results import load
from vcpo_bench.analysis.series import cell_rows
from vcpo_bench.records import STEPS_FILE


def test_columns_are_put_together_some_tables_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_tables, "_BLOCK", 2)
    alive: list[weakref.ref[pa.Table]] = []
    most = 0

    def tables() -> Iterator[tuple[pa.Table | None, int]]:
        nonlocal most
        for cell in range(7):
            columns = {"step": np.arange(3), "ess_ratio": [0.5, np.inf, cell / 8], "temperature": [cell] * 3}
            table = pa.table({name: values for name, values in columns.items() if name == "step" or cell != 4})
            alive.append(weakref.ref(table))
            most = max(most, sum(one() is not None for one in alive))
            yield (None if cell == 5 else table), 3
            del table

    found = columns_together(tables(), ["step", "ess_ratio", "temperature", "entropy"], STEPS_FILE)
    assert most <= 4, "more than a block and the next one"
    here = np.repeat(np.arange(7.0), 3)
    nothing = np.isin(here, (4, 5))
    ess = np.where(np.arange(21) % 3 == 2, here / 8, 0.5)
    ess[1::3] = np.nan
    np.testing.assert_array_equal(found["ess_ratio"], np.where(nothing, np.nan, ess))
    np.testing.assert_array_equal(found["temperature"], np.where(nothing, np.nan, here))
    np.testing.assert_array_equal(found["step"], np.where(here == 5, np.nan, np.arange(21) % 3))
    np.testing.assert_array_equal(found["entropy"], np.nan)


def test_cells_are_looked_up_one_by_one_not_update_by_update(
    tmp_path: Path, make_results: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = load(make_results(tmp_path, lags=(1, 16), seeds=range(2), steps=60))
    looked_up: list[int] = []
    isin = pd.Series.isin

    def counted(self: pd.Series, values: Any) -> pd.Series:
        looked_up.append(len(values))
        return isin(self, values)

    monkeypatch.setattr(pd.Series, "isin", counted)
    assert Weights().run(results).statements
    assert Gradients().run(results).statements
    assert looked_up
    assert max(looked_up) <= len(results.cells)


def test_rows_find_their_cell() -> None:
    cells = pd.DataFrame({"key": ["a", "b", "c"]})
    table = pd.DataFrame({"key": ["c", "c", "a", "other", "c"]})
    assert cell_rows(table, cells).tolist() == [2, 2, 0, -1, 2]
    assert cell_rows(table.iloc[:0], cells).tolist() == []


@pytest.mark.parametrize("processors", [1, 4, None])
@pytest.mark.parametrize("number", [0, 1, 47, 48, 49, 1000])
def test_results_come_in_the_order_of_the_items(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, number: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert list(ahead(lambda item: item * 2, iter(range(number)))) == [2 * item for item in range(number)]


def test_threads_are_a_little_ahead_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    begun, names = [], set()

    def look(item: int) -> int:
        begun.append(item)
        names.add(threading.current_thread().name)
        return item

    found = ahead(look, range(1000))
    taken = [next(found) for _ in range(100)]
    assert taken == list(range(100))
    assert len(begun) <= 100 + 6 * 48
    assert all(name.startswith("ahead") for name in names)
    found.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_an_error_is_raised_where_its_result_would_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def refuse(item: int) -> int:
        if item == 140:
            raise ValueError("not this one")
        return item

    found = ahead(refuse, range(200))
    assert [next(found) for _ in range(96)] == list(range(96))
    with pytest.raises(ValueError, match="not this one"):
        list(found)


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
