"""CSV: one row per step, also as the wandb page exports it (`RUN - NAME`, `RUN - NAME__MIN`)."""

from __future__ import annotations

import csv
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import encoding_of
from vcpo_bench.errors import UsageError

_BOUNDS = ("__MIN", "__MAX")
_SEPARATORS = (",", ";", "\t")


def read_csv(path: Path, rows: LogRows, run: str = "") -> None:
    """Read every row; cells that are empty or text are left out.

    Raises:
        UsageError: There is no header, a name is there twice, or the file holds several runs.
    """
    with path.open(encoding=encoding_of(path), errors="replace", newline="") as file, _cells_of_any_length():
        first = file.readline().replace("\0", "")
        lines = itertools.chain([first], (line.replace("\0", "") for line in file))
        reader = csv.reader(lines, delimiter=max(_SEPARATORS, key=first.count), strict=True)
        header = _next_row(reader, path, rows)
        if not header or len(header) < 2:
            raise NotYetError(f"{path} has no header with a step and a value; is it a CSV file?")
        names = _names(header, path, run)
        if twice := [name for name, count in Counter(names).items() if name and count > 1]:
            raise UsageError(f"{path}: two columns are called {twice[0]}; rename or drop one")
        width = len(header)
        while (cells := _next_row(reader, path, rows)) is not None:
            if not cells:
                continue
            if len(cells) != width:
                rows.add_bad_line(path.name)
                continue
            rows.add({name: cell for name, cell in zip(names, cells, strict=True) if name and cell}, path.name)


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """A completion is longer than the 131,072 characters that `csv` takes by default."""
    usual = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _next_row(reader: Iterator[list[str]], path: Path, rows: LogRows) -> list[str] | None:
    """The next row, a damaged one as an empty one; None at the end, or where a quote is never closed."""
    begin = reader.line_num + 1  # type: ignore[attr-defined]
    try:
        return next(reader, None)
    except csv.Error as error:
        rows.add_bad_line(path.name)
        if "unexpected end" not in str(error):
            return []
        rows.notes.append(
            f"{path.name}: the quote that opens in line {begin} is never closed; nothing after it was read"
        )
        return None


def _names(header: list[str], path: Path, wanted: str) -> list[str]:
    """The names of the columns; empty for those to leave out, as those of other runs."""
    exported = [title.rpartition(" - ") for title in header]
    runs = {run for run, _, name in exported if run and not name.endswith(_BOUNDS)}
    if wanted not in runs and (wanted or len(runs) > 1):
        shown = f"several runs ({', '.join(sorted(runs))})" if len(runs) > 1 else f"no run {wanted}"
        raise UsageError(f"{path} holds {shown}; name one: {path}::RUN")
    of_others = runs - {wanted} if wanted else set()
    return ["" if name.endswith(_BOUNDS) or run in of_others else name.strip() for run, _, name in exported]
