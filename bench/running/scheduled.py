"""Launchers whose jobs go on without the process that submitted them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.attending import Attendance
from vcpo_bench.bench.running.launchers.catalog import Launcher, Scheduler
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.errors import UsageError
from vcpo_bench.files.disk_space import disk_full, is_disk_full


@dataclass(frozen=True, kw_only=True)
class ScheduledLauncher(Launcher):
    """A launcher with a scheduler behind it; a subclass connects to that."""

    @abstractmethod
    def connect(self, options: RunOptions, detach: bool) -> Scheduler:
        """A connection to the scheduler.

        Args:
            options: How the cells are to be run.
            detach: Whether this process ends while the jobs run.

        Raises:
            UsageError: It does not answer, or ends with this process although that must not be.
        """

    def check(self, device: str) -> None:
        """Refuse to run where a package or a program is missing.

        Raises:
            UsageError: It is, or the device is one that the scheduler chooses.
        """
        if ":" in device:
            raise UsageError(f"--device {device}: --launcher {self.name} chooses the GPU of each cell; use cuda")
        self.check_installed()

    @abstractmethod
    def check_installed(self) -> None:
        """Refuse to run where a package or a program is missing.

        Raises:
            UsageError: It is.
        """

    def run(self, cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
        """Run cells to their ends; those whose jobs already wait or run are only watched."""
        if not cells:
            return 0
        with _full_disks_named(options):
            scheduler = self.connect(options, detach=False)
            attendance = Attendance(scheduler, cells, options)
            fresh = attendance.submit()
            old = len(cells) - fresh
            parts = [f"{fresh} cells submitted"] * bool(fresh) + [f"{old} with earlier jobs"] * bool(old)
            observer.message(f"{self.name}: {', '.join(parts)}")
            return attendance.attend(observer)

    def detach(self, cells: Sequence[PlannedCell], options: RunOptions) -> str:
        """Submit cells and leave them."""
        if not cells:
            return "all cells have ended"
        with _full_disks_named(options):
            scheduler = self.connect(options, detach=True)
            fresh = Attendance(scheduler, cells, options).submit()
            scheduler.close(done=False)
        return (
            f"{self.name}: {fresh} cells submitted, {len(cells) - fresh} had jobs already; the same command without "
            "--detach shows their progress, and Ctrl-C there cancels them"
        )


@contextmanager
def _full_disks_named(options: RunOptions) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if is_disk_full(problem):
            raise disk_full([options.out]) from problem
        raise
