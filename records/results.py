"""Finding the cells of a results folder, which may be a stranger's."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.errors import UsageError
from vcpo_bench.files.folders import refuse_link
from vcpo_bench.records.layout import CELLS


def cells_in(results: Path) -> Path:
    """The folder with the cells of a results folder.

    Raises:
        UsageError: There is none, or a link stands in for it.
    """
    cells = results / CELLS
    refuse_link(cells)
    if not results.exists():
        raise UsageError(f"{results}: there are no results yet; vcpo-bench run --out {results} makes some")
    if not cells.is_dir():
        raise UsageError(f"{results} is not a results folder: it has no {CELLS}/ inside")
    return cells
