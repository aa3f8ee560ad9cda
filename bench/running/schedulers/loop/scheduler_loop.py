"""The loop that runs the cells of a grid through a scheduler: submit what no job has, then watch the results folder.

The folder alone says what was done. The scheduler is only asked whether jobs that should be there still are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.order import chains, held_back, waves
from vcpo_bench.bench.running.schedulers.loop.cell_state import Action, CellState, Phase, describe, next_action
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.lost_cells import LostCells
from vcpo_bench.bench.running.schedulers.loop.results_watch import ResultsWatch
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult, Scheduler
from vcpo_bench.errors import DiskFullError
from vcpo_bench.files import claims
from vcpo_bench.files.disk_space import check_space
from vcpo_bench.progress import GridObserver
from vcpo_bench.records import CELLS

POLL_SECONDS = 1.0
"""Seconds between two looks at the results folder."""
SETTLE_SHARE = 0.6
"""Share of a lease, 72 s of 120 s, that a cell may take to show its end after its job has gone. An NFS mount with its
defaults hides a change for up to 60 s, and a lease is longer than any change stays hidden."""

START_SECONDS = 60.0
"""Seconds without any worker after which the scheduler is asked why."""


class Submission(NamedTuple):
    """What became of the cells when they were submitted.

    Attributes:
        fresh: Number of cells that were submitted.
        earlier: Number of cells that a living job of an earlier command has.
        held: Number of cells to submit once the cells whose step scales they use have ended, in jobs of their own.
        orphans: Number of canceled jobs, which a command had submitted that was cut off before it wrote them down.
    """

    fresh: int
    earlier: int
    held: int
    orphans: int


class SchedulerLoop:
    """The cells of a grid in the hands of a scheduler."""

    def __init__(self, scheduler: Scheduler, cells: Sequence[PlannedCell], options: RunOptions) -> None:
        self._scheduler, self._options = scheduler, options
        self._file = LaunchFile(options.out.resolve(), options.check)
        self._cells = {cell.key: cell for wave in waves(cells) for cell in wave}
        self._states = {key: CellState() for key in self._cells}
        self._watch = ResultsWatch(self._file.out / CELLS, cells)
        self._lost = LostCells(self._file.out / CELLS)
        self._submitted: set[str] = set()
        self._explained: set[str] = set()

    def submit(self) -> Submission:
        """Submit every cell without a living job, and cancel orphaned jobs."""
        handles, deaths = self._file.handles(), self._file.deaths()
        alive = self._scheduler.alive({handles[key] for key in self._cells if key in handles})
        for key in self._cells:
            state = CellState(deaths=deaths.get(key, 0))
            handle = handles.get(key)
            self._states[key] = state.submitted(handle) if handle in alive else state
        orphans = self._scheduler.orphans(set(handles.values()))
        self._cancel(orphans | self._file.replaced().keys())
        self._file.add_cells(self._options.cell_jobs((cell,) for cell in self._cells.values()))
        fresh = self._cells_in(Phase.WAITING)
        self._hand_over(fresh)
        held = len(self._cells_in(Phase.HELD))
        return Submission(len(fresh) - held, len(self._cells) - len(fresh), held, len(orphans))

    def wait(self, observer: GridObserver) -> int:
        """Wait until every cell has ended; returns how many failed or were left.

        Raises:
            DiskFullError: There is no space left.
        """
        began, asked = time.monotonic(), 0.0
        while True:
            polled = time.monotonic()
            self._watch.poll(observer)
            if not self._watch.unfinished:
                break
            self._record_lost()
            if time.monotonic() - asked > self._scheduler.poll_seconds:
                self._check_jobs(observer, polled)
                asked = time.monotonic()
                if not self._watch.begun and asked - began > START_SECONDS:
                    self._explain(observer)
            time.sleep(min(POLL_SECONDS, self._scheduler.poll_seconds))
        failed = self._watch.failed + len(self._cells_in(Phase.LEFT))
        self.close(keep_logs=bool(failed))
        return failed

    @contextmanager
    def canceling_on_stop(self, only_own: bool = False) -> Iterator[None]:
        """Inside, jobs of unfinished cells are canceled if this process is told to stop, or if the disk is full.

        If this process is killed, they go on.

        Args:
            only_own: Cancel only jobs that were submitted inside; earlier ones go on.
        """
        try:
            yield
        except BaseException as problem:
            if isinstance(problem, DiskFullError) or not isinstance(problem, Exception):
                current, replaced = self._current_handles(), self._file.replaced()
                earlier = {handle for handle, key in replaced.items() if key in self._watch.unfinished}
                self._cancel(current & self._submitted if only_own else current | earlier)
            raise

    def close(self, keep_logs: bool = False) -> None:
        """Leave the scheduler, and remove what jobs need, unless there are jobs of other cells of the folder."""
        others = {handle for key, handle in self._file.handles().items() if key not in self._cells}
        idle = not self._scheduler.alive(others)
        if idle and not keep_logs:
            self._file.remove()
        self._scheduler.close(done=idle)

    def _current_handles(self) -> set[str]:
        return {self._states[key].handle for key in self._watch.unfinished if self._states[key].handle}

    def _cells_in(self, phase: Phase) -> list[PlannedCell]:
        return [self._cells[key] for key, state in self._states.items() if state.phase is phase]

    def _hand_over(self, cells: Sequence[PlannedCell]) -> None:
        """Submit cells, or hold those that use step scales of a cell that another job is to end."""
        held = held_back(cells, self._watch.unfinished)
        self._states |= {key: self._states[key].held() for key in held}
        groups = chains([cell for cell in cells if cell.key not in held])
        if not groups:
            return
        make_observer = self._options.make_observer
        jobs = [
            Job(self._file.out, tuple(cell.key for cell in group), group[0].config.device, make_observer)
            for group in groups
        ]
        self._options.check()
        self._submit_jobs(jobs)

    def _submit_jobs(self, jobs: Sequence[Job]) -> None:
        """Submit jobs, and write down the handles of some before others are submitted."""
        left, taken = iter(jobs), set[str]()
        try:
            for handles in self._scheduler.submit(jobs, self._options.jobs):
                taken.update(handles)
                fresh = {key: handle for handle, job in zip(handles, left, strict=False) for key in job.keys}
                self._states |= {key: self._states[key].submitted(handle) for key, handle in fresh.items()}
                self._file.record_handles(fresh)
        except BaseException:  # also what the scheduler took at the last moment, and did not answer for
            self._cancel(taken | self._scheduler.orphans(self._file.handles().values()))
            raise
        self._submitted |= taken

    def _cancel(self, handles: Collection[str]) -> None:
        if handles:
            self._scheduler.cancel(handles)

    def _check_jobs(self, observer: GridObserver, polled: float) -> None:
        """Ask which jobs are alive, and do for each unfinished cell what follows.

        What happened after `polled`, when the results folder was looked at, cannot have been seen.
        """
        self._options.check()
        before = {key: state for key, state in self._states.items() if key in self._watch.unfinished}
        alive = self._scheduler.alive({state.handle for state in before.values() if state.has_job})
        for key, state in before.items():  # a cell comes before those that use its step scales
            goes_on, result = self._ask(key, state, alive, polled)
            action = next_action(state, goes_on, result)
            self._states[key] = state.after(action, result, time.monotonic())
            self._carry_out(action, key, state, result, observer)
        self._record_deaths(before)
        self._hand_over(self._cells_in(Phase.WAITING))

    def _ask(self, key: str, state: CellState, alive: Collection[str], polled: float) -> tuple[bool, JobResult | None]:
        """Whether what a cell waits for goes on, and how it ended; see `next_action`.

        Raises:
            DiskFullError: There is no space left: that is why jobs die, and no fault of the cell.
        """
        if state.phase is Phase.HELD:
            lender = self._cells[key].config.series
            left = self._states[lender].phase is Phase.LEFT
            return lender in self._watch.unfinished, JobResult(canceled=True) if left else None
        if not state.has_job or state.handle in alive:
            return True, None
        if state.phase is Phase.SUBMITTED or state.missed > polled - SETTLE_SHARE * claims.LEASE_SECONDS:
            return False, None
        claim = self._watch.claim(key)
        if claim is not None and claim.job != state.handle:
            return False, None  # another worker has it
        result = self._scheduler.result(state.handle)
        if not result.canceled:
            check_space(self._file.out)
        return False, result

    def _carry_out(
        self, action: Action, key: str, before: CellState, result: JobResult | None, observer: GridObserver
    ) -> None:
        """Do what an action asks for, but for submitting a cell."""
        cell, text = self._cells[key], describe(action, before, result, self._file.out)
        if action is Action.LOSE:
            self._lost.add(cell, text, before.handle)
        elif text:
            observer.message(f"{cell.config.label}: {text}")
        if action is Action.LEAVE:
            self._watch.drop(key)

    def _record_deaths(self, before: Mapping[str, CellState]) -> None:
        """Write down how many jobs have died, where that is more than before."""
        after = {key: self._states[key].deaths for key in before}
        if deaths := {key: count for key, count in after.items() if count > before[key].deaths}:
            self._file.record_deaths(deaths)

    def _record_lost(self) -> None:
        """Record lost cells as failed, and count their deaths anew: the next command runs them again."""
        if recorded := self._lost.record(self._watch.unfinished):
            self._file.record_deaths(dict.fromkeys(recorded, 0))

    def _explain(self, observer: GridObserver) -> None:
        """Say why no job starts; each reason once."""
        why = self._scheduler.why_waiting(self._current_handles())
        if why and why not in self._explained:
            self._explained.add(why)
            observer.message(f"no job has started for {START_SECONDS:.0f} s; {why}")
