"""A connection to what runs jobs, and how a job ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vcpo_bench.bench.running.schedulers.loop.job import Job


@dataclass(frozen=True, slots=True)
class Fate:
    """How a job ended that runs no more.

    Attributes:
        canceled: Whether somebody took it back: that is no failure.
        reason: What the scheduler says of it; empty: nothing.
        completed: Whether it came to its own end, so that nothing has killed it.
    """

    canceled: bool = False
    reason: str = ""
    completed: bool = False


class Scheduler(ABC):
    """A connection to what runs jobs. They go on without it.

    Attributes:
        every: Seconds between two questions about jobs.
    """

    every: float = 2.0

    @abstractmethod
    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        """Hand jobs over, some at a time.

        Args:
            jobs: The jobs; all in one call, since schedulers take many at once better than one by one.
            at_once: Most of them to run at the same time; 0: no limit.

        Yields:
            Handles of the next jobs, in their order: texts that another process can use as well. They come as soon as
            they are known, before the jobs are handed over where that is possible: the caller writes them down before
            it asks for the next.

        Raises:
            UsageError: The scheduler refuses them.
        """

    def strays(self, known: Collection[str]) -> set[str]:
        """Jobs of the results folder that wait or run and whose handles nobody could write down.

        Args:
            known: Every handle that was written down.
        """
        return set()

    @abstractmethod
    def alive(self, handles: Collection[str]) -> set[str]:
        """Those of the jobs that wait or run."""

    @abstractmethod
    def fate(self, handle: str) -> Fate:
        """How a job ended that the last call of `alive` did not return."""

    def why_waiting(self, handles: Collection[str]) -> str:
        """Why none of these jobs starts, and what to do, in one line; empty: nothing is known.

        Args:
            handles: What the last call of `alive` returned.
        """
        return ""

    @abstractmethod
    def cancel(self, handles: Collection[str]) -> None:
        """Take jobs back, whether they wait or run."""

    def close(self, done: bool) -> None:  # noqa: B027 - most have nothing to do
        """Leave it; `done`: no job of the results folder is left."""
