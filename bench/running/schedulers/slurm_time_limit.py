"""Jobs that reach their time limit are queued again, as long as their cells advance."""

from __future__ import annotations

import time

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.records import CELLS


class TimeLimit:
    """The time limit of a job, which is pickled with it each time it is queued again."""

    def __init__(self, job: Job, minutes: int) -> None:
        self._job, self._minutes = job, minutes
        self._began = 0.0
        self._reached: list[str] | None = None

    def begin(self) -> None:
        """Note that the job starts, for the first time or again."""
        self._began = time.monotonic()

    def check(self) -> None:
        """Refuse to go on without progress. Called when the job must make room, at its limit or for another job.

        Raises:
            RuntimeError: It is the time limit, and no cell has a newer checkpoint than when that was last reached. In
                the process that trains, this ends the cell as `error`.
        """
        if not self._is_over():
            return
        reached = [_newest(CellStore(self._job.out / CELLS, key)) for key in self._job.keys]
        if reached == self._reached:
            raise RuntimeError(
                f"two time limits of {self._minutes} minutes were reached without a new checkpoint: set more minutes"
            )
        self._reached = reached

    def _is_over(self) -> bool:
        """Whether the job has had its time, by the rule with which submitit tells that from preemption."""
        seconds = 60.0 * self._minutes
        return time.monotonic() - self._began >= min(0.8 * seconds, seconds - 600.0)


def _newest(store: CellStore) -> str:
    """How far a cell is, as text."""
    if store.ended() is not None:
        return "ended"
    newest = store.latest_checkpoint()
    return newest.name if newest else ""
