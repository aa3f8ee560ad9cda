"""Jobs for the pool, and an observer that records what happens to them."""

import os
from pathlib import Path

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.records.settings import CellSettings


class Log:
    """An observer that remembers, and may do something when a cell starts or ends."""

    def __init__(self, on_event=lambda name, arguments: None) -> None:
        self.events: list[tuple] = []
        self.on_event = on_event

    def __getattr__(self, name: str):
        def event(*arguments) -> None:
            self.events.append((name, *arguments))
            self.on_event(name, arguments)

        return event

    def names(self, kind: str) -> list[tuple]:
        return [event[1:] for event in self.events if event[0] == kind]


def jobs(tmp_path: Path, count: int) -> list[CellJob]:
    settings = CellSettings(steps=3, prompts=2, responses=4)
    spec = GridSpec(("clip",), (0,), tuple(range(count)), ("walk-eos",), settings=settings, controls=False)
    folder = ResultsFolder(tmp_path)
    return [CellJob((cell,), folder.cells, 0) for cell in plan_grid(spec)]


def children() -> list[int]:
    """Worker processes of this process."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
