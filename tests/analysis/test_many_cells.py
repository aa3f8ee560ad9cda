"""What keeps thousands of cells quick and small, counted in operations."""

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vcpo_bench.analysis import recorded_tables
from vcpo_bench.analysis.commands.gradients import analyze_gradients
from vcpo_bench.analysis.commands.weights import analyze_weights
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
    assert analyze_weights(results).statements
    assert analyze_gradients(results).statements
    assert looked_up
    assert max(looked_up) <= len(results.cells)


def test_rows_find_their_cell() -> None:
    cells = pd.DataFrame({"key": ["a", "b", "c"]})
    table = pd.DataFrame({"key": ["c", "c", "a", "other", "c"]})
    assert cell_rows(table, cells).tolist() == [2, 2, 0, -1, 2]
    assert cell_rows(table.iloc[:0], cells).tolist() == []
