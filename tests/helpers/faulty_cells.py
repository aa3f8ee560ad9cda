"""Cells that are killed while they train, with a checkpoint at every update, and what is left of them.

Cells run in children of a server process that has imported torch once, so a kill costs a fraction of a second.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from dataclasses import dataclass, field
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from vcpo_bench.bench.cells.cell_store import CHECKPOINT, CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell

_CONTEXT = multiprocessing.get_context("forkserver")
_HERE = str(Path(__file__).parent)
KEEP_EVERY = 4
CHILD_SECONDS = 120.0


def _start_server() -> None:
    """Start the server, which finds what it imports through the environment only."""
    _CONTEXT.set_forkserver_preload(["faulty_cells_ready"])
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([_HERE, *([known] if known else [])])
    try:
        ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if known is not None:
            os.environ["PYTHONPATH"] = known


def _train(cell: PlannedCell, cells_folder: Path) -> None:
    """Body of a child: the cell to its end, from its latest checkpoint."""
    run_cell.CHECKPOINT_SECONDS = 0.0
    run_cell.run_cell(cell, cells_folder, KEEP_EVERY, lambda *event: None)


@dataclass
class FaultyCell:
    """A cell of a results folder of its own.

    Attributes:
        kills: How often it was killed before it had ended.
        resumes: Updates done in the checkpoint that each later start found.
    """

    cell: PlannedCell
    folder: Path
    kills: int = 0
    resumes: list[int] = field(default_factory=list)

    @property
    def ended(self) -> Path:
        return self.folder / "cells" / self.cell.key

    def run(self, kill_after: float | None = None, at_once: bool = False) -> bool:
        """Train it in a child, killed so long after its first checkpoint or its start; whether the cell has ended."""
        cells = ResultsFolder(self.folder).cells
        before = self._updates_kept(cells)
        self.resumes.append(before)
        _start_server()
        child = _CONTEXT.Process(target=_train, args=(self.cell, cells))
        child.start()
        if kill_after is None:
            child.join(CHILD_SECONDS)
        else:
            while not at_once and child.is_alive() and self._updates_kept(cells) == before:
                time.sleep(0.001)
            child.join(kill_after)
        killed = child.is_alive()
        child.kill()
        child.join()
        assert killed or child.exitcode == 0, f"exit code {child.exitcode}"
        self.kills += killed
        return self.ended.is_dir()

    def _updates_kept(self, cells: Path) -> int:
        latest = CellStore(cells, self.cell.key).latest_checkpoint()
        return int(latest.name.removeprefix(CHECKPOINT)) if latest else 0

    def run_to_its_end(self, chance: Random, longest: float, kills: int) -> None:
        """Train it with at most so many kills: one in five at any time, the others shortly after a checkpoint."""
        while self.kills < kills:
            if self.run(chance.uniform(0.0, longest), at_once=chance.random() < 0.2):
                return
        assert self.run()

    def resumed_half_way(self) -> int:
        """How many starts found a checkpoint after the first update."""
        return sum(updates > 0 for updates in self.resumes)

    def bits(self) -> dict[str, str]:
        """Every recorded number, wall-clock times aside, and hashes of the kept weights."""
        found = {}
        for path in sorted(self.ended.rglob("*.parquet")):
            table = pq.read_table(path)
            columns = [name for name in table.column_names if not name.startswith("seconds")]
            found[str(path.relative_to(self.ended))] = repr(table.select(columns).to_pydict())
        for path in sorted(self.ended.rglob("*.safetensors")):
            found[str(path.relative_to(self.ended))] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
