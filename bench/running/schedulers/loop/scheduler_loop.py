"""Running cells through a scheduler: submit what nobody runs, then watch the results folder.

The folder alone says what was done. The scheduler is asked only whether jobs that should be there still are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.order import chains, waves
from vcpo_bench.bench.running.pool.pool import MAX_DEATHS
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.lost_cells import GivenUp
from vcpo_bench.bench.running.schedulers.loop.scheduler import Scheduler
from vcpo_bench.bench.running.schedulers.loop.store_watch import StoreWatch, failed_ends
from vcpo_bench.errors import DiskFullError
from vcpo_bench.files import claims
from vcpo_bench.files.disk_space import check_space
from vcpo_bench.records import CELLS

LOOK_SECONDS = 1.0
"""Seconds between two looks at the results folder."""
SETTLE_SHARE = 0.6
"""Share of a lease, 72 s of 120 s, that a cell may take to show its end after its job has gone. An NFS mount with its
defaults hides a change for up to 60 s, and a lease is longer than any change stays hidden."""

START_SECONDS = 60.0
"""Seconds without any worker after which the scheduler is asked why."""


class Attendance:
    """The cells of a grid in the hands of a scheduler.

    Args:
        scheduler: Runs the jobs.
        cells: The cells, none of which has ended well.
        options: How to run them.

    Attributes:
        strays: Number of jobs that a command which was cut off had submitted, and that were canceled.
    """

    def __init__(self, scheduler: Scheduler, cells: Sequence[PlannedCell], options: RunOptions) -> None:
        self._scheduler, self._options = scheduler, options
        self._file = LaunchFile(options.out.resolve(), options.check)
        self._cells = cells
        self._before = failed_ends(self._file.out / CELLS, cells)
        self._held: dict[str, PlannedCell] = {}
        self._handles: dict[str, str] = {}
        self._new: set[str] = set()
        self.strays = 0
        self._ends: Counter[tuple[str, bool]] = Counter()
        self._given_up = GivenUp(self._file.out / CELLS)
        self._missed: dict[str, float] = {}
        self._canceled = 0
        self._explained: set[str] = set()
        self._waiting: Collection[str] = {cell.key for cell in cells}

    @property
    def held(self) -> int:
        """Number of cells to submit once the cells whose step scales they use have ended, in jobs of their own."""
        return len(self._held)

    def submit(self) -> int:
        """Submit the cells that no living job was told to run; returns how many were submitted.

        Living jobs that no cell names are canceled first: a command was cut off before it could write them down.
        """
        keys = {cell.key for cell in self._cells}
        entered = self._file.handles()
        known = {key: handle for key, handle in entered.items() if key in keys}
        alive = self._scheduler.alive(set(known.values()))
        self._handles = {key: handle for key, handle in known.items() if handle in alive}
        strays = self._scheduler.strays(set(entered.values()))
        self.strays = len(strays)
        self._cancel(strays | self._file.replaced().keys())
        fresh = [cell for cell in self._cells if cell.key not in self._handles]
        self._ends.update({(key, False): count for key, count in self._file.deaths().items()})
        self._file.add(self._options.cell_jobs((cell,) for cell in self._cells))
        self._hand_over(fresh)
        return len(fresh) - self.held

    def attend(self, observer: GridObserver) -> int:
        """Wait until every cell has ended; returns how many failed or were canceled.

        Args:
            observer: Receives the events of the cells.

        Raises:
            DiskFullError: There is no space left.
        """
        watch = StoreWatch(self._file.out / CELLS, self._cells, observer, self._before)
        self._waiting = watch.waiting
        began, asked = time.monotonic(), 0.0
        while True:
            looked = time.monotonic()
            watch.look()
            if not watch.waiting:
                break
            self._record_given_up(watch)
            if time.monotonic() - asked > self._scheduler.every:
                self._look_after(watch, observer, looked)
                asked = time.monotonic()
                if not watch.begun and asked - began > START_SECONDS:
                    self._explain(observer)
            time.sleep(min(LOOK_SECONDS, self._scheduler.every))
        failed = watch.failed + self._canceled
        self.end(keep_logs=bool(failed))
        return failed

    @contextmanager
    def answerable(self, only_new: bool = False) -> Iterator[None]:
        """Inside, jobs of cells that have not ended are canceled if this process is told to stop, or the disk is full.

        If this process is killed, they go on.

        Args:
            only_new: Cancel those that were submitted inside; earlier ones go on.
        """
        try:
            yield
        except BaseException as problem:
            if isinstance(problem, DiskFullError) or not isinstance(problem, Exception):
                mine = {handle for key, handle in self._handles.items() if key in self._waiting}
                replaced = {handle for handle, key in self._file.replaced().items() if key in self._waiting}
                self._cancel(mine & self._new if only_new else mine | replaced)
            raise

    def end(self, keep_logs: bool = False) -> None:
        """Leave the scheduler, and remove what jobs need, unless there are jobs of other cells of the folder.

        Args:
            keep_logs: A cell has failed.
        """
        keys = {cell.key for cell in self._cells}
        others = {handle for key, handle in self._file.handles().items() if key not in keys}
        idle = not self._scheduler.alive(others)
        if idle and not keep_logs:
            self._file.remove()
        self._scheduler.close(done=idle)

    def _hand_over(self, cells: Sequence[PlannedCell]) -> None:
        """Submit cells, or hold them back where they use step scales of a cell that another job is to end."""
        ready: dict[str, PlannedCell] = {}
        for cell in (cell for wave in waves(cells) for cell in wave):
            lender = cell.config.series
            (self._held if lender in self._waiting and lender not in ready else ready)[cell.key] = cell
        groups = chains(list(ready.values()))
        if not groups:
            return
        make_observer = self._options.make_observer
        jobs = [
            Job(self._file.out, tuple(cell.key for cell in group), group[0].config.device, make_observer)
            for group in groups
        ]
        self._options.check()
        left, taken = iter(jobs), set[str]()
        try:
            for handles in self._scheduler.submit(jobs, self._options.jobs):
                taken.update(handles)
                fresh = {key: handle for handle, job in zip(handles, left, strict=False) for key in job.keys}
                self._handles |= fresh
                self._file.submitted(fresh)
        except BaseException:  # also what was taken at the last moment, and never told
            self._cancel(taken | self._scheduler.strays(self._file.handles().values()))
            raise
        self._new |= taken

    def _cancel(self, handles: Collection[str]) -> None:
        if handles:
            self._scheduler.cancel(handles)

    def _look_after(self, watch: StoreWatch, observer: GridObserver, looked: float) -> None:
        """Submit again the cells whose jobs have gone without ending them.

        Args:
            watch: What the folder shows.
            observer: Is told.
            looked: When it was looked at: what happened later cannot be in it.
        """
        self._options.check()
        mine = {key: self._handles[key] for key in watch.waiting if key not in self._held and key not in self._given_up}
        alive = self._scheduler.alive(set(mine.values()))
        gone = [key for key, handle in mine.items() if handle not in alive]
        self._missed = {key: self._missed.get(key, time.monotonic()) for key in gone}
        settled = looked - SETTLE_SHARE * claims.LEASE_SECONDS
        lost = [key for key in gone if self._missed[key] <= settled]
        before = self._ends.copy()
        again = [watch.waiting[key] for key in lost if self._must_run_again(key, watch, observer)]
        if died := [key for key in lost if self._ends[key, False] > before[key, False]]:
            self._file.died({key: self._ends[key, False] for key in died})
        for cell in again:
            del self._missed[cell.key]
        free = [key for key, cell in self._held.items() if cell.config.series not in watch.waiting]
        lent = [self._held.pop(key) for key in free]
        self._hand_over(again + [cell for cell in lent if cell.key in watch.waiting])

    def _explain(self, observer: GridObserver) -> None:
        """Say why no job starts; each reason once."""
        why = self._scheduler.why_waiting({handle for key, handle in self._handles.items() if key in self._waiting})
        if why and why not in self._explained:
            self._explained.add(why)
            observer.message(f"no job has started for {START_SECONDS:.0f} s; {why}")

    def _must_run_again(self, key: str, watch: StoreWatch, observer: GridObserver) -> bool:
        """What to do about a cell whose job has gone: nothing, give it up, or run it again."""
        cell, handle, claim = watch.waiting[key], self._handles[key], watch.claim(key)
        if claim is not None and claim.job != handle:
            return False  # another worker has it
        fate = self._scheduler.fate(handle)
        if fate.canceled:
            self._leave(cell, "its job was canceled", watch, observer)
            return False
        check_space(self._file.out)
        self._ends[key, fate.completed] += 1
        again, label = self._ends[key, fate.completed] < MAX_DEATHS, cell.config.label
        said = f" ({fate.reason})" if fate.reason else ""
        if fate.completed and again:
            observer.message(f"{label}: its job {handle} completed, and its end is not to be seen; submitted again")
        elif fate.completed:
            why = f"{MAX_DEATHS} jobs completed, and its end is not to be seen in {self._file.out}: do they share it?"
            self._leave(cell, why, watch, observer)
        elif again:
            observer.message(f"{label}: its job {handle} ended early{said}; submitted again")
        else:
            self._given_up.add(cell, f"its job ended early {MAX_DEATHS} times{said}", handle)
        return again

    def _record_given_up(self, watch: StoreWatch) -> None:
        """Record what was given up, and begin to count anew: the next command runs it again."""
        if recorded := self._given_up.record(watch.waiting):
            self._file.died(dict.fromkeys(recorded, 0))

    def _leave(self, cell: PlannedCell, why: str, watch: StoreWatch, observer: GridObserver) -> None:
        """Give up a cell that was canceled, and those held back for its step scales."""
        observer.message(f"{cell.config.label}: {why}; the same command runs it")
        self._canceled += 1
        watch.drop(cell.key)
        for borrower in [held for held in self._held.values() if held.config.series == cell.key]:
            del self._held[borrower.key]
            self._leave(borrower, "the cell whose step scales it uses was canceled", watch, observer)
