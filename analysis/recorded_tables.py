"""Recorded tables of cells: read from Parquet, checked for the columns they need, put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vcpo_bench import records
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.records.steps import STEPS
from vcpo_bench.records.table_file import read_table_file

COLUMNS: dict[str, tuple[records.Column, ...]] = {
    records.STEPS_FILE: STEPS,
    records.EVALS_FILE: records.EVALS,
    records.LAGS_FILE: records.LAGS,
    records.SAMPLES_FILE: records.SAMPLES,
    records.EPISODES_FILE: records.EPISODES,
    records.PROBES_FOLDER: records.PROBES,
    records.SCORES_FOLDER: records.LM_EVAL_SCORES,
}
"""Columns of each kind of table."""

_REQUIRED = {
    records.STEPS_FILE: ("step", "sampled_reward"),
    records.EVALS_FILE: ("step", "greedy_reward", "sampled_reward"),
    records.LAGS_FILE: ("step", "lag", "trajectories"),
    records.SAMPLES_FILE: ("step", "reward"),
    records.EPISODES_FILE: ("step", "text"),
    records.SCORES_FOLDER: ("step", "task", "metric", "filter", "value"),
    records.PROBES_FOLDER: tuple(column.name for column in records.PROBES),
}
"""Without these a table means nothing; any other column may be absent (an earlier version) and reads as empty."""
_LEFT_OUT = "its cell is left out of every figure that needs it"
_NUMPY_KIND = {"int": "int64", "float": "float64", "bool": "bool", "str": "object"}


@dataclass(frozen=True)
class Problem:
    """A damaged or missing file.

    Attributes:
        folder: Results folder it is in.
        file: Its path inside that folder.
        key: Cell it belongs to; empty: none in particular.
        what: What is wrong and what follows from it; reads on after the path.
    """

    folder: Path
    file: str
    key: str
    what: str

    def __str__(self) -> str:
        """One line with the whole path."""
        return f"{self.folder / self.file} {self.what}"


def read_table(path: Path, kind: str, optional: bool) -> pa.Table | None:
    """Read one table of one cell; None if it is optional and absent.

    Args:
        path: The file.
        kind: Key of `COLUMNS`.
        optional: A missing file is no damage.

    Raises:
        DamagedResultError: It cannot be read, does not match its checksum, lacks a column, or has one of another kind.
    """
    if optional and not path.exists():
        return None
    try:
        table = read_table_file(path, COLUMNS[kind])
    except DamagedResultError as error:
        raise DamagedResultError(f"{error.what}; {_LEFT_OUT}", path) from error
    except OSError as error:
        raise DamagedResultError(f"cannot be read ({error.strerror}); {_LEFT_OUT}", path) from error
    missing = [name for name in _REQUIRED[kind] if name not in table.column_names]
    if missing:
        raise DamagedResultError(f"lacks the column {missing[0]!r}; {_LEFT_OUT}", path)
    return table


def concatenate(keys: list[str], tables: list[pa.Table], kind: str) -> pd.DataFrame:
    """Tables of several cells below one another, the cell's `key` in front.

    A column of this kind that no cell recorded is present and empty; infinite values are missing.
    """
    columns = COLUMNS[kind]
    if not tables:
        empty = {column.name: pd.Series(dtype=_NUMPY_KIND[column.kind]) for column in columns}
        return pd.DataFrame({"key": pd.Series(dtype="object"), **empty})
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    lengths = [table.num_rows for table in tables]
    frame.insert(0, "key", np.repeat(np.array(keys, dtype=object), lengths))
    absent = {column.name: "" if column.kind == "str" else np.nan for column in columns if column.name not in frame}
    floats = frame.select_dtypes("float").columns
    frame[floats] = frame[floats].where(np.isfinite(frame[floats]))
    return frame.assign(**absent)
