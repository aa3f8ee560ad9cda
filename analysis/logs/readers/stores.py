"""trackio and mlflow: their sqlite files, opened read only, and mlflow's folder of text files."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import number
from vcpo_bench.errors import UsageError

SQLITE_MAGIC = b"SQLite format 3\0"
_WORK_PER_TURN = 10_000
"""Instructions of SQLite's machine between two looks at signals."""
_LEAST_WORK, _WORK_PER_BYTE = 10_000_000, 100
"""Instructions that reading may take: some, and some for each byte. A real database takes about one a byte."""
_LEAST_LENGTH, _MOST_LENGTH = 1_000_000, 2**31 - 1
"""Bytes of the longest text, in a file smaller or larger than that."""


def read_sqlite(path: Path, rows: LogRows, run: str = "") -> None:
    """Read one run of a trackio or mlflow database.

    Raises:
        UsageError: The file is damaged, of another program, or holds several runs and none was named.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            _confine(database, path.stat().st_size)
            _refuse_other_than_tables(database, path)
            names = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
            if {"run_name", "step", "metrics"} <= names:
                _read_trackio(database, path, rows, run)
            elif {"run_uuid", "key", "value", "step"} <= names:
                _read_mlflow(database, path, rows, run)
            else:
                raise UsageError(f"{path} is neither a trackio nor an mlflow database: it has no such table of metrics")
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where sqlite quotes a name that is no text
        raise NotYetError(f"{path}: sqlite cannot read it ({' '.join(str(error).split())})") from None


def _confine(database: sqlite3.Connection, size: int) -> None:
    """Bound what a hostile database can make SQLite do, and let signals through while it works."""
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, _LEAST_LENGTH), _MOST_LENGTH))
    turns = itertools.count()
    most = (_LEAST_WORK + _WORK_PER_BYTE * size) // _WORK_PER_TURN
    database.set_progress_handler(lambda: int(next(turns) > most), _WORK_PER_TURN)


def _refuse_other_than_tables(database: sqlite3.Connection, path: Path) -> None:
    """A view or a virtual table runs what its author wrote, as long as he likes."""
    query = "SELECT type, sql FROM sqlite_master WHERE lower(name) = 'metrics'"
    for kind, made_by in database.execute(query):
        if kind != "table" or not str(made_by).upper().startswith("CREATE TABLE"):
            raise UsageError(f"{path}: its `metrics` is no plain table ({kind}); only tables are read")


def _read_trackio(database: sqlite3.Connection, path: Path, rows: LogRows, run: str) -> None:
    chosen = _choose([row[0] for row in database.execute("SELECT DISTINCT run_name FROM metrics")], path, run)
    query = "SELECT step, metrics FROM metrics WHERE run_name = ? ORDER BY rowid"
    for step, text in database.execute(query, (chosen,)):
        try:
            row = json.loads(text)
        except (ValueError, RecursionError, TypeError):
            row = None
        if isinstance(row, dict):
            rows.add({"_step": step, **row}, path.name)
        else:
            rows.add_bad_line(path.name)


def _read_mlflow(database: sqlite3.Connection, path: Path, rows: LogRows, run: str) -> None:
    chosen = _choose([row[0] for row in database.execute("SELECT DISTINCT run_uuid FROM metrics")], path, run)
    query = "SELECT key, value, step, is_nan FROM metrics WHERE run_uuid = ? ORDER BY timestamp, rowid"
    for name, value, step, is_nan in database.execute(query, (chosen,)):
        at = number(step)
        if isinstance(name, str) and at is not None:
            rows.add({name: float("nan") if is_nan else value}, path.name, at, "step")
        else:
            rows.add_bad_line(path.name)


def _choose(runs: list[str], path: Path, run: str) -> str:
    if run in runs:
        return run
    if run or len(runs) != 1:
        shown = ", ".join(map(str, runs)) or "none"
        raise UsageError(f"{path} holds the runs {shown}; name one: {path}::RUN")
    return runs[0]


def read_mlflow_metric(path: Path, root: Path, rows: LogRows) -> None:
    """Read one metric of an `mlruns` folder: lines `timestamp value step`."""
    name = path.relative_to(root).as_posix()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = line.split()
        step = number(parts[2]) if len(parts) == 3 else None
        if step is not None:
            rows.add({name: parts[1]}, f"metrics:{name}", step, "step")
        else:
            rows.add_bad_line(name)
