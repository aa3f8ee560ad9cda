"""Runs: results folders, with the state of their cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vcpo_bench.commands.support.kinds.base import Kind, Listing
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.records import CELL_FILE, CELLS, GRID_FILE, PARTIAL_SUFFIX


class RunKind(Kind):
    """The results folders below a folder."""

    singular, plural = "run", "runs"

    def __init__(self, results: Path) -> None:
        self._results = results

    def listing(self) -> Listing:
        """Every results folder with the number of its cells by state."""
        rows: list[tuple[str, int | str, str, int | str]] = []
        for grid in sorted(self._results.glob(f"**/{GRID_FILE}")):
            try:
                rows.append((str(grid.parent), *_states(grid.parent)))
            except (ValueError, OSError, RecursionError, AttributeError) as error:
                rows.append((str(grid.parent), "?", f"damaged: a file cannot be read ({error})", "?"))
        nothing = f"No results folder in {self._results}. vcpo-bench run --out {self._results / 'NAME'} makes one."
        return Listing(("results folder", "cells", "ended", "not ended"), rows, "" if rows else nothing)

    def show(self, name: str, as_json: bool) -> None:
        """Print the scoreboard of the folder."""
        show_scoreboard(Path(name), as_json)


def _states(folder: Path) -> tuple[int, str, int]:
    from vcpo_bench.files.checksums import read_sealed

    asked = len(read_sealed(folder / GRID_FILE).get("cells", {}))
    cells = list((folder / CELLS).glob("*"))
    partial = sum(cell.name.endswith(PARTIAL_SUFFIX) for cell in cells)
    statuses = Counter(
        str(read_sealed(cell / CELL_FILE).get("status", "?")) for cell in cells if (cell / CELL_FILE).is_file()
    )
    ended = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "0"
    return asked, ended, partial
