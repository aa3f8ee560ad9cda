"""CSV: one row per step, also as the wandb page exports it (`RUN - NAME`, `RUN - NAME__MIN`)."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

from vcpo_bench.analysis.logs.not_yet import NotYetError
from vcpo_bench.analysis.logs.rows import Rows
from vcpo_bench.errors import UsageError

_BOUNDS = ("__MIN", "__MAX")
_SEPARATORS = (",", ";", "\t")


def read_csv(path: Path, rows: Rows) -> None:
    """Read every row; cells that are empty or text are left out.

    Raises:
        UsageError: There is no header, a name is there twice, or the file holds several runs.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline().replace("\0", "")
        lines = itertools.chain([first], (line.replace("\0", "") for line in file))
        reader = csv.reader(lines, delimiter=max(_SEPARATORS, key=first.count))
        header = next(reader, None)
        if not header or len(header) < 2:
            raise NotYetError(f"{path} has no header with a step and a value; is it a CSV file?")
        names = _names(header, path)
        if twice := [name for name in names if name and names.count(name) > 1]:
            raise UsageError(f"{path}: two columns are called {twice[0]}; rename or drop one")
        width = len(header)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != width:
                rows.add_bad_line(path.name)
                continue
            rows.add({name: cell for name, cell in zip(names, cells, strict=True) if name and cell}, path.name)


def _names(header: list[str], path: Path) -> list[str]:
    """The names of the columns; empty for those to leave out."""
    exported = [title.rpartition(" - ") for title in header]
    runs = {run for run, _, name in exported if run and not name.endswith(_BOUNDS)}
    if len(runs) > 1:
        shown = ", ".join(sorted(runs))
        raise UsageError(f"{path} holds several runs ({shown}); export one of them")
    return ["" if name.endswith(_BOUNDS) else name.strip() for _, _, name in exported]
