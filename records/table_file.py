"""Reading a recorded table: checked against its checksum, and every known column of the kind that readers rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import Seal, read_sealed, seal_of
from vcpo_bench.files.parquet import read_present
from vcpo_bench.records.column import Column
from vcpo_bench.records.layout import CELL_FILE, STATE_FILE

_FITS: dict[str, Callable[[pa.DataType], bool]] = {
    "int": pa.types.is_integer,
    "float": lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    "bool": pa.types.is_boolean,
    "str": lambda kind: _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind),
}

_FITTING: dict[tuple[Column, ...], pa.Schema] = {}
"""Of each kind of table, the schema that was last found to fit."""


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_table_file(
    path: Path,
    columns: Iterable[Column],
    only: Sequence[str] | None = None,
    seal: Seal | None = None,
    most_rows: int | None = None,
) -> pa.Table:
    """Read a table of a cell or of a checkpoint.

    Args:
        path: The file.
        columns: Schema from `records`. Any may be absent; other columns are read as they are.
        only: Names of the columns to read, where the file has them; None: all.
        seal: Checksums that vouch for it; None: those in the `state.json` or `cell.json` beside it, if any.
        most_rows: Most rows that it can have; None: unknown.

    Raises:
        DamagedResultError: It is missing, does not match its checksum, is no table, or a column has another kind. The
            message names the file, and with it the cell.
        OSError: The disk cannot be read at the moment.
    """
    table = read_present(path, seal_beside(path) if seal is None else seal, only, most_rows)
    _check(path, table.schema, tuple(columns))
    return table


def _check(path: Path, schema: pa.Schema, columns: tuple[Column, ...]) -> None:
    """Refuse columns of another kind than theirs; thousands of tables with one schema are looked at once."""
    known = _FITTING.get(columns)
    if known is not None and known.equals(schema):
        return
    kinds = dict(zip(schema.names, schema.types, strict=True))
    for column in columns:
        found = kinds.get(column.name)
        if found is not None and not (pa.types.is_null(found) or _FITS[column.kind](found)):
            raise DamagedResultError(f"has {found} in the column {column.name!r}, not {column.kind}", path)
    _FITTING[columns] = schema


def seal_beside(path: Path) -> Seal | None:
    """The checksums that vouch for a file of a cell or of a checkpoint; None: an earlier version wrote none.

    Raises:
        DamagedResultError: The file that holds them is damaged.
    """
    holder = next((one for name in (STATE_FILE, CELL_FILE) if (one := path.with_name(name)).exists()), None)
    return None if holder is None else seal_of(read_sealed(holder))
