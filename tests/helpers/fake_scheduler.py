"""A scheduler without machines: a test says what its jobs do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult, Scheduler
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.records.settings import CellSettings


class FakeScheduler(Scheduler):
    """Jobs do nothing until a test ends them; one that is neither in `alive` nor ended its cell has died.

    Attributes:
        calls: The jobs of every call of `submit`.
        running: Jobs by handle.
        array: Most jobs that are taken at once.
        names_first: Whether handles are known before jobs are taken.
        completed: Handles of jobs that ended as they should.
        why: Why its jobs do not start.
        on_look: Called as jobs are asked for.
        on_instant: Called with the name of each instant of a submission: `before N` and `taken N`, for its array N.
        unreachable: As if the process of the caller were dead: nothing that it asks for happens.
    """

    poll_seconds = 0.01

    def __init__(self, array: int = 1000, names_first: bool = False) -> None:
        self.calls: list[list[Job]] = []
        self.running: dict[str, Job] = {}
        self.canceled: set[str] = set()
        self.completed: set[str] = set()
        self.asked = 0
        self.why = ""
        self.array, self.names_first = array, names_first
        self.on_look: Callable[[], object] = lambda: None
        self.on_instant: Callable[[str], object] = lambda instant: None
        self.unreachable = False

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        self.calls.append(list(jobs))
        for number, begin in enumerate(range(0, len(jobs), self.array)):
            part = jobs[begin : begin + self.array]
            self.on_instant(f"before {number}")
            handles = [f"{len(self.calls)}_{begin + place}" for place in range(len(part))]
            if self.names_first:
                yield handles
            self.running |= dict(zip(handles, part, strict=True))
            self.on_instant(f"taken {number}")
            if not self.names_first:
                yield handles

    def alive(self, handles: Collection[str]) -> set[str]:
        self.asked += 1
        self.on_look()
        return set(handles) & self.running.keys()

    def orphans(self, known: Collection[str]) -> set[str]:
        return self.running.keys() - set(known)

    def result(self, handle: str) -> JobResult:
        if handle in self.completed:
            return JobResult(reason="COMPLETED", completed=True)
        return JobResult(handle in self.canceled, "CANCELLED" if handle in self.canceled else "NODE_FAIL")

    def why_waiting(self, handles: Collection[str]) -> str:
        return f"{self.why} ({len(handles)})" if self.why else ""

    def cancel(self, handles: Collection[str]) -> None:
        if self.unreachable:
            return
        self.canceled |= set(handles)
        for handle in handles:
            self.running.pop(handle, None)


def end_cell(cells: Path, cell: PlannedCell, status: str = "completed") -> None:
    """What a worker leaves of a cell."""
    store = CellStore(cells, cell.key)
    with store.open(), store.finish(failed=status == "error") as final:
        StepRecorder("basic").write(final)
        facts = {"status": status, "key": cell.key, "config": cell.config.values(), "seconds": 1.0, "reason": "r"}
        write_sealed(final / "cell.json", facts | {"warnings": ["w"]})


def cells_of(out: Path, count: int, methods: Sequence[str] = ("clip",), steps: int = 3) -> list[PlannedCell]:
    ResultsFolder(out)
    settings = CellSettings(steps=steps, prompts=2, responses=4)
    spec = GridSpec(methods, (1,), tuple(range(count)), ("walk-eos",), settings=settings, controls=False)
    return plan_grid(spec)
