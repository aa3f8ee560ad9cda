"""What a grid asks of a scheduler, and how one of its jobs ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vcpo_bench.bench.running.schedulers.loop.job import Job


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended.

    Attributes:
        canceled: Whether somebody canceled it, which is no failure.
        preempted: Whether it made way for another job, which is no failure either: it is submitted again.
        reason: What the scheduler says about it; empty: nothing.
        completed: Whether it returned by itself, so that nothing has killed it.
    """

    canceled: bool = False
    reason: str = ""
    completed: bool = False
    preempted: bool = False


class Scheduler(ABC):
    """A connection to what runs jobs. The jobs go on when the connection ends.

    Attributes:
        poll_seconds: Seconds between two questions about jobs.
    """

    poll_seconds: float = 2.0

    @abstractmethod
    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        """Submit jobs, some at a time.

        Args:
            jobs: The jobs; all in one call, since schedulers take many at once better than one by one.
            at_once: Most of them to run at the same time; 0: no limit.

        Yields:
            Handles of the next jobs, in their order: texts that another process can use as well. They come as soon as
            they are known, before the jobs are submitted where that is possible: the caller writes them down before
            it asks for the next.

        Raises:
            UsageError: The scheduler refuses them.
        """

    def orphans(self, known: Collection[str]) -> set[str]:
        """Living jobs of the results folder whose submission was cut off before their handles were written down."""
        return set()

    @abstractmethod
    def alive(self, handles: Collection[str]) -> set[str]:
        """Those of the jobs that wait or run."""

    @abstractmethod
    def result(self, handle: str) -> JobResult:
        """How a job ended that the last call of `alive` did not return."""

    def why_waiting(self, handles: Collection[str]) -> str:
        """Why none of these jobs starts, and what to do, in one line; empty: nothing is known.

        Args:
            handles: What the last call of `alive` returned.
        """
        return ""

    @abstractmethod
    def cancel(self, handles: Collection[str]) -> None:
        """Cancel jobs, whether they wait or run."""

    def close(self, done: bool) -> None:  # noqa: B027 - most have nothing to do
        """End the connection; `done`: no job of the results folder is left."""
