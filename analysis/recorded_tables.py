"""Recorded tables of cells: read from Parquet, checked for the columns they need, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vcpo_bench import records
from vcpo_bench.analysis.float_column import FloatColumn
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
_TEXTS = {kind: [column.name for column in columns if column.kind == "str"] for kind, columns in COLUMNS.items()}
_AS_DECLARED: dict[str, pa.Schema] = {}
"""Of each kind of table, the schema that the last one had: thousands with the same one are not looked at in detail."""
_IN_ORDER = (records.STEPS_FILE, records.EVALS_FILE, records.LAGS_FILE)
_CONSEQUENCE = "its cell is left out of every figure that needs it"
_MOST_EPISODES = 100
"""Most episodes that are kept of an evaluation."""
_MORE_EVALUATIONS = 2
"""An evaluation before the first update, and one after the last."""
_BLOCK = 256
"""Tables whose columns are put together at a time."""
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
    path: Path,
    kind: str,
    optional: bool,
    columns: Sequence[str] | None = None,
    seal: Seal | None = None,
    most_rows: int | None = None,
) -> pa.Table | None:
    """Read one table of one cell; None if it is optional and absent.

    Args:
        path: The file.
        kind: Key of `COLUMNS`.
        optional: A missing file is no damage.
        columns: Which columns to read, where the file has them; None: all.
        seal: Checksums of its cell, if they are known; None: they are looked up beside it.
        most_rows: Most rows that it can have, see `most_rows`; None: unknown.

    Raises:
        DamagedResultError: It cannot be read, does not match its checksum, lacks a column, or holds values of another
            type or steps out of order.
    """
    if optional and not path.exists():
        return None
    try:
        table = _checked(read_table_file(path, COLUMNS[kind], columns, seal, most_rows), kind)
        present = table.column_names
        missing = [name for name in _REQUIRED[kind] if name not in present and name in (columns or (name,))]
        if missing:
            raise DamagedResultError(f"lacks the column {missing[0]!r}", path)
    except DamagedResultError as error:
        raise DamagedResultError(f"{error.what}; {_CONSEQUENCE}", path) from error
    except OSError as error:
        raise DamagedResultError(f"cannot be read ({error.strerror}); {_CONSEQUENCE}", path) from error
    return table


def most_rows(kind: str, updates: int, trajectories: int) -> int | None:
    """Most rows that a table of a cell can have; None: it is no table of its updates.

    Args:
        kind: Key of `COLUMNS`.
        updates: Number of updates that the cell made.
        trajectories: Number of trajectories of each.
    """
    each = {
        records.STEPS_FILE: 1,
        records.EVALS_FILE: 1,
        records.LAGS_FILE: trajectories,
        records.SAMPLES_FILE: trajectories,
        records.EPISODES_FILE: _MOST_EPISODES,
    }.get(kind)
    return None if each is None else (updates + _MORE_EVALUATIONS) * each


def _checked(table: pa.Table, kind: str) -> pa.Table:
    """The table with the types that its kind declares.

    Raises:
        DamagedResultError: A column holds something else or is there twice, or steps are missing or not in order.
    """
    known = _AS_DECLARED.get(kind)
    if known is None or not known.equals(table.schema):
        table = _cast(table, kind)
        _AS_DECLARED[kind] = table.schema
    table = _with_texts(table, kind)
    if kind in _IN_ORDER and table.schema.get_field_index("step") >= 0:
        steps = table.column("step")
        if steps.null_count or bool(((at := steps.to_numpy())[1:] < at[:-1]).any()):
            raise DamagedResultError("holds steps that are missing or out of order")
    return table


def _cast(table: pa.Table, kind: str) -> pa.Table:
    """The columns of a kind with their types; others stay if they hold numbers, and would not pass for the key."""
    if len(set(table.column_names)) < table.num_columns:
        raise DamagedResultError("has a column twice")
    columns = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        wanted = _ARROW[kind].get(name) or (None if name == "key" else _number_kind(values.type))
        if wanted is None:
            continue
        try:
            columns[name] = values if values.type == wanted else values.cast(wanted)
        except pa.ArrowException as error:
            raise DamagedResultError(f"holds {values.type} in the column {name!r} where {wanted} belongs") from error
    return pa.table(columns) if columns else table.select([])


def _number_kind(found: pa.DataType) -> pa.DataType | None:
    """The type to which columns of numbers are cast, so that those of several cells fit together."""
    if pa.types.is_integer(found):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(found) else None


def _with_texts(table: pa.Table, kind: str) -> pa.Table:
    """The table, with empty texts for missing ones where a text is required.

    Raises:
        DamagedResultError: A text is not UTF-8, which reading alone does not notice.
    """
    for name in _TEXTS[kind]:
        place = table.schema.get_field_index(name)
        if place < 0:
            continue
        texts = table.column(place)
        try:
            texts.validate(full=True)
        except pa.ArrowException as error:
            raise DamagedResultError(f"holds text in the column {name!r} that is not UTF-8") from error
        if texts.null_count and name in _REQUIRED[kind]:
            table = table.set_column(place, name, texts.fill_null(""))
    return table


def columns_together(
    tables: Iterator[tuple[pa.Table | None, int]], names: Sequence[str], kind: str
) -> dict[str, pd.Series]:
    """Columns of thousands of cells below one another, with missing values for cells that have none.

    Only some tables at a time are in memory.

    Args:
        tables: The table of each cell, None where it cannot be read, and its number of rows.
        names: The columns; one that the schema does not know holds numbers.
        kind: Key of `COLUMNS`.
    """
    types = {name: _ARROW[kind].get(name, pa.float64()) for name in names}
    lengths: list[int] = []
    floats: dict[str, FloatColumn] = {}
    others: list[dict[str, pd.Series]] = []
    while block := list(islice(tables, _BLOCK)):
        begin = sum(lengths)
        lengths.append(sum(rows for _, rows in block))
        others.append(_block(block, types))
        for name in [name for name, values in others[-1].items() if types[name] == pa.float64()]:
            floats.setdefault(name, FloatColumn()).put(begin, others[-1].pop(name).to_numpy())
    pa.default_memory_pool().release_unused()
    nothing = {wanted: _empty(sum(lengths), wanted) for wanted in set(types.values())}
    found = {}
    for name, wanted in types.items():
        if name in floats:
            found[name] = pd.Series(floats[name].whole(sum(lengths)), copy=False)
        elif any(name in block for block in others):
            parts = [
                block.pop(name) if name in block else _empty(rows, wanted)
                for rows, block in zip(lengths, others, strict=True)
            ]
            found[name] = pd.concat(parts, ignore_index=True)
        else:
            found[name] = nothing[wanted]  # columns that nobody recorded share their memory
    return found


def _block(tables: list[tuple[pa.Table | None, int]], types: dict[str, pa.DataType]) -> dict[str, pd.Series]:
    """Those columns of some cells below one another that one of them has; infinite values are missing."""
    name, wanted = next(iter(types.items()))
    readable = [
        table
        if table is not None and table.num_columns and table.num_rows == rows
        # Rows are counted by a column, whichever it is.
        else pa.table({name: pa.nulls(rows, wanted)})
        for table, rows in tables
    ]
    whole = pa.concat_tables(readable, promote_options="permissive")
    found = {}
    for name in types.keys() & set(whole.column_names):
        values: pd.Series = whole.column(name).cast(types[name]).to_pandas()
        found[name] = values.where(np.isfinite(values)) if values.dtype.kind == "f" else values
    return found


def _empty(rows: int, kind: pa.DataType) -> pd.Series:
    values: pd.Series = pa.nulls(rows, kind).to_pandas()
    return values


def concatenate(tables: Iterable[tuple[str, pa.Table]], kind: str) -> pd.DataFrame:
    """Tables of several cells below one another, the cell's `key` in front.

    A column of this kind that no cell recorded is present and empty; infinite values are missing.
    """
    columns, remaining = COLUMNS[kind], iter(tables)
    keys: list[str] = []
    lengths: list[int] = []
    blocks: list[pa.Table] = []
    while block := list(islice(remaining, _BLOCK)):
        keys += [key for key, _ in block]
        lengths += [table.num_rows for _, table in block]
        # In one piece: thousands of small tables take several times the memory of their values.
        blocks.append(pa.concat_tables([one for _, one in block], promote_options="permissive").combine_chunks())
    if not blocks:
        empty = {column.name: pd.Series(dtype=_NUMPY_KIND[column.kind]) for column in columns}
        return pd.DataFrame({"key": pd.Series(dtype="object"), **empty})
    frame: pd.DataFrame = pa.concat_tables(blocks, promote_options="permissive").to_pandas()
    # One text object per cell: as an Arrow string, each of millions of rows would hold the whole key.
    frame.insert(0, "key", pd.Series(np.repeat(np.array(keys, dtype=object), lengths), dtype=object))
    absent = {column.name: "" if column.kind == "str" else np.nan for column in columns if column.name not in frame}
    floats = frame.select_dtypes("float").columns
    frame[floats] = frame[floats].where(np.isfinite(frame[floats]))
    return frame.assign(**absent)
