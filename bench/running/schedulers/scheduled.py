"""Launchers that submit jobs to a scheduler, where they go on without the process that submitted them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.catalog import Launcher
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.scheduler import Scheduler
from vcpo_bench.errors import UsageError
from vcpo_bench.files.disk_space import full_disks_named
from vcpo_bench.progress import GridObserver

if TYPE_CHECKING:
    from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop


@dataclass(frozen=True, kw_only=True)
class ScheduledLauncher(Launcher):
    """A launcher of jobs of a scheduler. A subclass only connects to its scheduler and checks what it is asked for."""

    @abstractmethod
    def connect(self, options: RunOptions, detach: bool) -> Scheduler:
        """A connection to the scheduler.

        Args:
            options: How the cells are to be run.
            detach: Whether this process ends while the jobs run.

        Raises:
            UsageError: It does not answer, or `detach` is set and it would end with this process.
        """

    def check(self, device: str) -> None:
        """Refuse to run where a package or a program is missing, or where a job cannot get what a cell needs.

        Raises:
            UsageError: It is so, or the device names one GPU, which is for the scheduler to choose.
        """
        if ":" in device:
            raise UsageError(f"--device {device}: --launcher {self.name} chooses the GPU of each cell; use cuda")
        self.check_installed()
        self.check_request()

    def check_request(self) -> None:
        """Refuse what no job of this scheduler can be given.

        Raises:
            UsageError: It is asked for.
        """

    @abstractmethod
    def check_installed(self) -> None:
        """Refuse to run where a package or a program is missing.

        Raises:
            UsageError: It is.
        """

    def run(self, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        """Run cells to their ends; those whose jobs already wait or run are only watched."""
        if not cells:
            self._tidy(options)
            return 0
        with full_disks_named(options.out):
            return watch_jobs(self.name, self.connect(options, detach=False), cells, options, observer)

    def detach(self, cells: Sequence[PlannedCell], options: RunOptions) -> str:
        """Submit cells and leave them; returns one line that says where they are.

        Raises:
            UsageError: That is not possible.
            DiskFullError: There is no space left.
        """
        if not cells:
            return "all cells have ended"
        with full_disks_named(options.out):
            return detach_jobs(self.name, self.connect(options, detach=True), cells, options)

    def _tidy(self, options: RunOptions) -> None:
        """Remove what jobs have left that ended while nobody watched."""
        if not LaunchFile(options.out.resolve()).handles():
            return
        with suppress(UsageError), full_disks_named(options.out):  # nothing can be tidied where nobody answers
            _loop(self.connect(options, detach=True), [], options).close()


def _loop(scheduler: Scheduler, cells: Sequence[PlannedCell], options: RunOptions) -> SchedulerLoop:
    from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop  # which imports torch

    return SchedulerLoop(scheduler, cells, options)


def watch_jobs(
    name: str, scheduler: Scheduler, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver
) -> int:
    """Submit the cells that no living job runs, and wait until all have ended; returns how many failed."""
    loop = _loop(scheduler, cells, options)
    with loop.canceling_on_stop():
        fresh, earlier, held, orphans = loop.submit()
        parts = [f"{fresh} cells submitted"] * bool(fresh) + [f"{earlier} with earlier jobs"] * bool(earlier)
        parts += [f"{orphans} canceled that an interrupted submission had left"] * bool(orphans)
        parts += [f"{held} to be submitted when those whose step scales they use have ended"] * bool(held)
        observer.message(f"{name}: {', '.join(parts)}")
        return loop.wait(observer)


def detach_jobs(name: str, scheduler: Scheduler, cells: Sequence[PlannedCell], options: RunOptions) -> str:
    """Submit the cells that no living job runs; returns one line that says what to do next."""
    loop = _loop(scheduler, cells, options)
    with loop.canceling_on_stop(only_own=True):
        fresh, earlier, held, _ = loop.submit()
        scheduler.close(done=False)
    later = f"{held} not submitted, because they use step scales of cells that run: give this command again later"
    return (
        f"{name}: {fresh} cells submitted, {earlier} had jobs already; "
        + f"{later}; " * bool(held)
        + "the same command without --detach shows their progress, and Ctrl-C there cancels them"
    )
