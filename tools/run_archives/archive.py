"""One archive: what a study's analyses read of some ended cells, in one small file.

A ZIP file with `cells.json` (each `cell.json`, without checksums) and a Parquet table each of the updates, the
evaluations and the realized lags, all cells below one another. Evaluations and lags are exact. Of the updates, measured
seconds and empty columns are left out, and numbers are kept in single precision: a relative error of at most 6e-8.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import CHECKSUM, FILES, read_sealed, write_sealed
from vcpo_bench.files.parquet import write_parquet
from vcpo_bench.records import CELL_FILE, CELLS, EVALS_FILE, GRID_FILE, LAGS_FILE, STEPS_FILE

FACTS = "cells.json"
TABLES = (STEPS_FILE, EVALS_FILE, LAGS_FILE)
KEY = "key"
_PLAIN = re.compile(r"\w[\w.,=+()-]*")
_LEVEL = 19
_TIME = (1980, 1, 1, 0, 0, 0)  # a fixed one: the same runs make the same file


def pack(cells: Iterable[Path], path: Path) -> None:
    """Write an archive of cells.

    Args:
        cells: Folders of ended cells.
        path: The file.
    """
    folders = sorted(cells)
    facts = [_without_seal(read_sealed(folder / CELL_FILE)) for folder in folders]
    parts = {FACTS: json.dumps(facts, indent=1, sort_keys=True).encode()}
    for name in TABLES:
        whole = _below_one_another(folders, name)
        parts[name] = _small(_lighter(whole) if name == STEPS_FILE else whole)
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            kind = zipfile.ZIP_DEFLATED if name == FACTS else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, kind)


class Archive(NamedTuple):
    """What an archive holds.

    Attributes:
        facts: Of each cell, as in its `cell.json`.
        tables: Rows of all cells, by the name of their file.
    """

    facts: list[dict[str, Any]]
    tables: dict[str, pa.Table]


def read(path: Path) -> Archive:
    """Read an archive.

    Raises:
        UsageError: It is broken, or no archive of runs, or a key in it is no plain name of a folder.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            facts: list[dict[str, Any]] = json.loads(archive.read(FACTS))
            tables = {name: pq.read_table(io.BytesIO(archive.read(name))) for name in TABLES}
        keys = [str(cell[KEY]) for cell in facts]
        for table in tables.values():
            table.column(KEY)
    except (zipfile.BadZipFile, zlib.error, OSError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is no archive of runs, or it is broken: {' '.join(str(error).split())}") from error
    if len(set(keys)) < len(keys):
        raise UsageError(f"{path} names a cell twice")
    for key in keys:
        if not _PLAIN.fullmatch(key):
            raise UsageError(f"{path} has a cell {key!r}, which is no plain name of a folder")
    return Archive(facts, tables)


def unpack(path: Path, results: Path) -> int:
    """Write the cells of an archive into a results folder.

    Returns:
        How many there are.

    Raises:
        UsageError: As `read`, or the folder has one of these cells; nothing is written.
    """
    facts, tables = read(path)
    for cell in facts:
        if (there := results / CELLS / cell[KEY]).exists():
            raise UsageError(f"{there} is there already, and stays; unpack into another folder")
    for name, table in tables.items():
        for cell in facts:
            folder = results / CELLS / cell["key"]
            folder.mkdir(parents=True, exist_ok=True)
            write_parquet(folder / name, table.filter(pc.field(KEY) == cell["key"]).drop_columns(KEY))
    for cell in facts:
        write_sealed(results / CELLS / cell["key"] / CELL_FILE, cell)
    _plan(results / GRID_FILE, facts)
    return len(facts)


def _plan(path: Path, facts: Iterable[Mapping[str, Any]]) -> None:
    """Say in `grid.json` which of these cells are controls; what it says of others stays."""
    known = read_sealed(path)["cells"] if path.exists() else {}
    own = {cell["key"]: {"control": bool(cell.get("control"))} for cell in facts}
    write_sealed(path, {"cells": {**known, **own}}, cover=False)


def _without_seal(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in (FILES, CHECKSUM)}


def _below_one_another(folders: Iterable[Path], name: str) -> pa.Table:
    tables = []
    for folder in folders:
        table = pq.read_table(folder / name)
        tables.append(table.add_column(0, KEY, pa.array([folder.name] * len(table), pa.string())))
    return pa.concat_tables(tables, promote_options="permissive")  # unpacked cells are in single precision


def _lighter(table: pa.Table) -> pa.Table:
    """The updates without measured seconds and empty columns, in single precision."""
    for name in table.column_names:
        column = table.column(name)
        if name.startswith("seconds_") or column.null_count == len(table):
            table = table.drop_columns(name)
        elif pa.types.is_floating(column.type):
            table = table.set_column(table.column_names.index(name), name, column.cast(pa.float32(), safe=False))
    return table


def _small(table: pa.Table) -> bytes:
    """A Parquet file; bytes of the same place in a number stand together, which compresses better."""
    split = [column.name for column in table.schema if pa.types.is_floating(column.type)]
    rest = [name for name in table.column_names if name not in split]
    sink = io.BytesIO()
    encoding: dict[str, Any] = {"use_dictionary": rest, "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT")}
    pq.write_table(table, sink, compression="zstd", compression_level=_LEVEL, **encoding)
    return sink.getvalue()
