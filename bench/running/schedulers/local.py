"""Worker processes of this machine: children of this process or, detached, of one in the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.run_here import run_here
from vcpo_bench.bench.running.schedulers.catalog import Launcher
from vcpo_bench.bench.running.schedulers.detached import DetachedPool
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.running.schedulers.scheduled import detach_jobs, full_disks_named, watch_jobs


@dataclass(frozen=True, kw_only=True)
class Local(Launcher):
    """Worker processes on this machine."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "worker processes on this machine"
    here: ClassVar[bool] = True

    def check(self, device: str) -> None:
        """Nothing can be missing."""

    def run(self, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        """Run cells in a pool of `options.jobs` processes, or watch them where a background process does."""
        detached, handles = DetachedPool(options), LaunchFile(options.out.resolve()).handles()
        if detached.alive({handles[cell.key] for cell in cells if cell.key in handles}):
            with full_disks_named(options):
                return watch_jobs(self.name, detached, cells, options, observer)
        detached.cancel(detached.orphans(()))
        failed = run_here(cells, options, observer)
        if handles and not failed and detached.owns(handles.values()):
            SchedulerLoop(detached, cells, options).close()
        return failed

    def detach(self, cells: Sequence[PlannedCell], options: RunOptions) -> str:
        """Leave cells to a background process of this machine."""
        if not cells:
            return "all cells have ended"
        with full_disks_named(options):
            return detach_jobs(self.name, DetachedPool(options), cells, options)
