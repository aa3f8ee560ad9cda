"""Updates of thousands of cells by group of seeds: the group is a number until the table is made."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.results import GROUP, Results


def with_group(results: Results, *columns: str) -> pd.DataFrame:
    """Columns of all updates, `n` (trajectories per update), and `group`, which `named` spells out."""
    steps = results.step_columns(*columns)
    cell = pd.Index(results.cells["key"]).get_indexer(pd.Index(steps["key"]))
    groups = results.cells.groupby(GROUP, sort=False, dropna=False).ngroup().to_numpy()
    found: pd.DataFrame = steps.assign(n=_batch_size(results.cells)[cell], group=groups[cell])[cell >= 0]
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
