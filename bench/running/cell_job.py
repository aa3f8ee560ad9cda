"""What is run in one place: a cell, or several as one stack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.training.step_observer import ObserverFactory

MAX_DEATHS = 3
"""A cell whose workers or jobs die this many times ends with the status `error`."""


@dataclass(frozen=True, slots=True)
class CellJob:
    """What a worker needs to run a cell, or several as one stack.

    Attributes:
        cells: The cells.
        cells_folder: `cells` of the results folder.
        keep_every: Keep a numbered checkpoint every so many updates; 0: none.
        plugins: Plug-in files to load first.
        make_observer: Makes the observer of a cell that may be stopped early.
    """

    cells: tuple[PlannedCell, ...]
    cells_folder: Path
    keep_every: int
    plugins: tuple[Path, ...] = ()
    make_observer: ObserverFactory | None = None

    @property
    def cell(self) -> PlannedCell:
        """The cell, or the first of the stack."""
        return self.cells[0]

    @property
    def label(self) -> str:
        """What is run, in a few words."""
        others = len(self.cells) - 1
        return f"{self.cell.config.label}{f' and {others} more' if others else ''}"
