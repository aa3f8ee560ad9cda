"""A scheduler without machines: a test says what its jobs do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.running.jobs import Job
from vcpo_bench.bench.running.launchers.catalog import Fate, Scheduler
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.files.checksums import write_sealed


class FakeScheduler(Scheduler):
    """Jobs do nothing until a test ends them; one that is neither in `alive` nor ended its cell has died.

    Attributes:
        calls: The jobs of every call of `submit`.
        running: Jobs by handle.
    """

    every = 0.01

    def __init__(self) -> None:
        self.calls: list[list[Job]] = []
        self.running: dict[str, Job] = {}
        self.canceled: set[str] = set()
        self.asked = 0
        self.on_look = lambda: None

    def submit(self, jobs: Sequence[Job], at_once: int) -> list[str]:
        self.calls.append(list(jobs))
        handles = [f"{len(self.calls)}_{number}" for number in range(len(jobs))]
        self.running |= dict(zip(handles, jobs, strict=True))
        return handles

    def alive(self, handles: Collection[str]) -> set[str]:
        self.asked += 1
        self.on_look()
        return set(handles) & self.running.keys()

    def fate(self, handle: str) -> Fate:
        return Fate(handle in self.canceled, "CANCELLED" if handle in self.canceled else "NODE_FAIL")

    def cancel(self, handles: Collection[str]) -> None:
        self.canceled |= set(handles)
        for handle in handles:
            self.running.pop(handle, None)


def end_cell(cells: Path, cell: PlannedCell, status: str = "completed") -> None:
    """What a worker leaves of a cell."""
    store = CellStore(cells, cell.key)
    with store.open(), store.finish(failed=status == "error") as final:
        StepRecorder("basic").write(final)
        facts = {"status": status, "key": cell.key, "config": cell.config.model_dump(), "seconds": 1.0, "reason": "r"}
        write_sealed(final / "cell.json", facts)


def cells_of(out: Path, count: int, methods: Sequence[str] = ("clip",)) -> list[PlannedCell]:
    ResultsFolder(out)
    settings = CellSettings(steps=3, prompts=2, responses=4)
    spec = GridSpec(methods, (1,), tuple(range(count)), ("walk-eos",), settings=settings, controls=False)
    return plan_grid(spec)
