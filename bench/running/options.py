"""How a grid is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.records import CELLS


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a grid is run; no option changes results.

    Attributes:
        out: Results folder.
        jobs: Number of worker processes, or most cells that a scheduler runs at once.
        wait: Wait for another run on the folder to finish instead of raising.
        keep_every: Keep a numbered checkpoint every so many updates; 0: none.
        plugins: Plug-in files, loaded by every worker.
        make_observer: Makes the observer of a cell that may be stopped early.
        stack: Most cells that the local launcher trains as one stack, `auto` or `off`.
        check: Called before anything is written that only the command which plans the folder may write, or submitted;
            raises `UsageError` if that is no longer this one.
    """

    out: Path
    jobs: int
    wait: bool = False
    keep_every: int = 0
    plugins: tuple[Path, ...] = ()
    make_observer: ObserverFactory | None = None
    stack: str = "off"
    check: Callable[[], object] = field(default=lambda: None, compare=False)

    def cell_jobs(self, groups: Iterable[Sequence[PlannedCell]]) -> list[CellJob]:
        """What a worker needs to run each group of cells: several are trained as one stack."""
        folder = self.out / CELLS
        return [CellJob(tuple(cells), folder, self.keep_every, self.plugins, self.make_observer) for cells in groups]
