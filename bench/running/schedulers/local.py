"""Worker processes of this machine, children of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.order import waves
from vcpo_bench.bench.running.pool.pool import run_jobs
from vcpo_bench.bench.running.pool.stacks import stacks
from vcpo_bench.bench.running.schedulers.catalog import Launcher
from vcpo_bench.progress import GridObserver


@dataclass(frozen=True, kw_only=True)
class Local(Launcher):
    """Worker processes on this machine."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "worker processes on this machine"
    here: ClassVar[bool] = True

    def check(self, device: str) -> None:
        """Nothing can be missing."""

    def run(self, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        """Run cells in a pool of `options.jobs` processes, in an order in which none waits for another."""
        failed = 0
        for wave in waves(cells):
            groups = stacks(wave, options.stack, options.jobs, observer.message)
            failed += run_jobs(options.cell_jobs(groups), options.jobs, observer)
        return failed
