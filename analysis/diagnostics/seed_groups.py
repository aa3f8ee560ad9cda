"""Updates of thousands of cells by group of seeds: the group is a number until the table is made."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.results import GROUP, Results
from vcpo_bench.analysis.series import cell_rows


def with_group(results: Results, *columns: str) -> pd.DataFrame:
    """Columns of all updates, `n` (trajectories per update), and `group`, which `named` spells out."""
    steps = results.step_columns(*columns)
    cell = cell_rows(steps, results.cells)
    groups = results.cells.groupby(GROUP, sort=False, dropna=False).ngroup().to_numpy()
    found: pd.DataFrame = steps.assign(n=_batch_size(results.cells)[cell], group=groups[cell])
    return found if (cell >= 0).all() else found[cell >= 0]


def with_updates(results: Results) -> pd.DataFrame:
    """The cells that have updates."""
    recorded = pd.unique(results.step_columns()["key"])  # comparing with millions of equal keys takes seconds
    found: pd.DataFrame = results.cells[results.cells["key"].isin(recorded)]
    return found


def named(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The table with the columns of `GROUP` in place of `group`."""
    groups = results.cells[GROUP].drop_duplicates(ignore_index=True)
    spelled = groups.loc[table["group"]].reset_index(drop=True)
    return pd.concat([spelled, table.drop(columns="group")], axis=1)


def _batch_size(cells: pd.DataFrame) -> NDArray[np.int64]:
    absent = pd.Series(np.nan, index=cells.index)
    size: pd.Series[float] = cells.get("prompts", absent) * cells.get("responses", absent)
    return np.asarray(size.fillna(128), dtype=np.int64)
