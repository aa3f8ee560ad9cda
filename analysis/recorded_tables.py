"""Recorded tables of cells: read from Parquet, checked for the columns they need, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from vcpo_bench import records
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import Seal
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
_ARROW_KIND = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}
_ARROW = {kind: {column.name: _ARROW_KIND[column.kind] for column in columns} for kind, columns in COLUMNS.items()}
_IN_ORDER = (records.STEPS_FILE, records.EVALS_FILE, records.LAGS_FILE)
_CONSEQUENCE = "its cell is left out of every figure that needs it"
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


def read_table(
    path: Path, kind: str, optional: bool, columns: Sequence[str] | None = None, seal: Seal | None = None
) -> pa.Table | None:
    """Read one table of one cell; None if it is optional and absent.

    Args:
        path: The file.
        kind: Key of `COLUMNS`.
        optional: A missing file is no damage.
        columns: Which columns to read, where the file has them; None: all.
        seal: Checksums of its cell, if they are known; None: they are looked up beside it.

    Raises:
        DamagedResultError: It cannot be read, does not match its checksum, lacks a column, or holds values of another
            type or steps out of order.
    """
    if optional and not path.exists():
        return None
    try:
        table = _checked(read_table_file(path, COLUMNS[kind], columns, seal), kind)
        missing = [name for name in _REQUIRED[kind] if name not in table.column_names and name in (columns or (name,))]
        if missing:
            raise DamagedResultError(f"lacks the column {missing[0]!r}", path)
    except DamagedResultError as error:
        raise DamagedResultError(f"{error.what}; {_CONSEQUENCE}", path) from error
    except OSError as error:
        raise DamagedResultError(f"cannot be read ({error.strerror}); {_CONSEQUENCE}", path) from error
    return table


def _checked(table: pa.Table, kind: str) -> pa.Table:
    """The table with the types that its kind declares.

    Raises:
        DamagedResultError: A column holds something else, or steps are missing or not in order.
    """
    for place, (name, found) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        wanted = _ARROW[kind].get(name, found)
        if found != wanted:
            try:
                table = table.set_column(place, name, table.column(place).cast(wanted))
            except pa.ArrowException as error:
                raise DamagedResultError(f"holds {found} in the column {name!r} where {wanted} belongs") from error
    if "step" in table.column_names and kind in _IN_ORDER:
        steps = table.column("step")
        if steps.null_count or bool((np.diff(steps.to_numpy()) < 0).any()):
            raise DamagedResultError("holds steps that are missing or out of order")
    return table


def together(tables: Sequence[tuple[pa.Table | None, int]], name: str, kind: str) -> pd.Series:
    """One column of several cells below one another, with missing values for cells that have none.

    Args:
        tables: The table of each cell, None where it cannot be read, and its number of rows.
        name: The column.
        kind: Key of `COLUMNS`.
    """
    wanted = _ARROW[kind][name]
    chunks: list[pa.Array] = []
    for table, rows in tables:
        known = table is not None and name in table.column_names and table.num_rows == rows
        chunks += table.column(name).chunks if known and table is not None else [pa.nulls(rows, wanted)]
    values: pd.Series = pa.chunked_array(chunks, wanted).to_pandas()
    return values.where(np.isfinite(values)) if values.dtype.kind == "f" else values


class RecordedUpdates:
    """The updates of one run, a column at a time: `analysis.monitoring.signal.Updates` without a data frame.

    Infinite values are missing; a column that was not recorded is empty.

    Args:
        table: Of `records.STEPS_FILE`.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._known: dict[str, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __contains__(self, name: object) -> bool:
        return name in _ARROW[records.STEPS_FILE] or name in self._table.column_names

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> NDArray[np.float64]:
        if name not in self._table.column_names:
            return np.full(len(self), np.nan)
        values = self._table.column(name).to_numpy().astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)


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
