"""The tables of `records`: rows in memory, typed Parquet files on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench.records import Column, Level
from vcpo_bench.records.table_file import read_table_file

_LEVELS: tuple[Level, ...] = ("basic", "diagnostics", "full")
_KINDS = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}

Row = Mapping[str, Any]


def includes(level: Level, wanted: Level) -> bool:
    """Whether record level `level` includes columns of level `wanted`."""
    return _LEVELS.index(level) >= _LEVELS.index(wanted)


def arrow_schema(columns: Sequence[Column], level: Level) -> pa.Schema:
    """The Arrow schema of a table at a record level; unit and meaning are field metadata."""
    return pa.schema(
        pa.field(c.name, _KINDS[c.kind], metadata={"unit": c.unit, "meaning": c.meaning})
        for c in columns
        if includes(level, c.level)
    )


class RecordTable:
    """An append-only table of one cell.

    Args:
        columns: Schema from `records`.
        level: Record level; columns of higher levels are left out.

    Attributes:
        columns: The values so far, by column.
    """

    def __init__(self, columns: Sequence[Column], level: Level) -> None:
        self._known = columns
        self._schema = arrow_schema(columns, level)
        self.columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def append(self, row: Row) -> None:
        """Add one row; a missing value is null.

        Raises:
            KeyError: The row has a key that is no column of this table.
        """
        unknown = row.keys() - self.columns.keys()
        if unknown:
            raise KeyError(f"not columns of this table: {sorted(unknown)}")
        for name, values in self.columns.items():
            values.append(row.get(name))

    def arrow(self) -> pa.Table:
        """The whole table."""
        return pa.table(self.columns, schema=self._schema)

    def row(self, index: int) -> Row:
        """The row at `index`; a missing value is None."""
        return {name: values[index] for name, values in self.columns.items()}

    def write(self, path: Path) -> None:
        """Write the whole table to `path`."""
        pq.write_table(self.arrow(), path, compression="zstd")

    def read(self, path: Path) -> None:
        """Replace the rows by those of the file at `path`; a column that it lacks is null.

        Raises:
            DamagedResultError: See `read_table_file`.
            OSError: The disk cannot be read at the moment.
        """
        table = read_table_file(path, self._known)
        empty = [None] * table.num_rows
        there = set(table.column_names)
        self.columns = {name: table[name].to_pylist() if name in there else list(empty) for name in self.columns}
