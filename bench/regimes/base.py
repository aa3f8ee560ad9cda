"""The interface of every staleness schedule: what is sampled when, and which update consumes it.

One version is one optimizer update: theta_t is the policy after t updates, and update t turns theta_t into theta_{t+1}.
Batch i names its prompts and its sampling noise, so data are common random numbers across regimes, lags and methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from vcpo_bench.errors import UsageError


class CellShape(NamedTuple):
    """What a schedule needs to know about a cell.

    Attributes:
        seed: Seed of the run; schedules draw from streams of their own.
        prompts: Prompts per update (P).
        responses: Responses per prompt (G).
        tokens: Longest response (T).
    """

    seed: int
    prompts: int
    responses: int
    tokens: int


class Order(NamedTuple):
    """Tokens to sample now, with the weights published last.

    Attributes:
        batch: Index of the batch.
        rows: Flat indices of its trajectories; None for all.
        start: First token to draw.
        stop: One past the last token to draw; None for the end of the response.
    """

    batch: int
    rows: tuple[int, ...] | None = None
    start: int = 0
    stop: int | None = None


class Take(NamedTuple):
    """What an update consumes of one batch: these groups (prompts with all their responses), or all for None."""

    batch: int
    groups: tuple[int, ...] | None = None


class StalenessSchedule(ABC):
    """A regime at one lag. It decides what happens when; it never samples or trains.

    Before update t the trainer asks `admit(t)`, samples, trains on `select(t)`, then discards `evict(t)`.
    Where `planned`, each answer is a pure function of the arguments of the constructor and of t.

    Args:
        staleness: Largest lag k, in optimizer updates.
        shape: Sizes and seed of the cell.
        publish_every: Updates between two publications of weights to the sampler; adds 0..publish_every-1 to the lag.

    Attributes:
        planned: Whether everything is decided in advance. If not, deliveries decide (`AsyncSchedule`).
        several_updates: Whether one rollout feeds more than one update, so that its proximal policy differs from the
            current one.
        trains_once: Whether no trajectory is trained on twice, so that an update sees a fresh sample of its policy.
    """

    planned = True
    several_updates = False
    trains_once = True

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1) -> None:
        self.staleness, self.shape, self.publish_every = staleness, shape, publish_every

    @abstractmethod
    def admit(self, update: int) -> list[Order]:
        """What to sample just before `update`, in this order."""

    @abstractmethod
    def select(self, update: int) -> list[Take]:
        """What `update` consumes: `shape.prompts` groups of batches that were admitted and not evicted."""

    @abstractmethod
    def evict(self, update: int) -> list[int]:
        """Batches that nothing after `update` consumes."""

    def abort(self, update: int) -> list[int]:
        """Batches in flight to drop before `update`; a planned schedule drops none."""
        return []

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Most batches held at once, queued or in flight, while an update runs."""

    def groups(self, batch: int) -> int:
        """Prompts in a batch."""
        return self.shape.prompts

    def proximal(self, update: int) -> list[int]:
        """Batches whose proximal policy is theta_t: those that `update` is the first to train on, all at once."""
        return []

    def version(self, update: int) -> int:
        """Version of the weights the sampler holds just before `update`."""
        return update - update % self.publish_every

    def filling(self, update: int) -> bool:
        """Whether the pipeline is still filling, so that the lag is bounded by the age of the run."""
        return update < self.staleness

    def updates(self, steps: int) -> int:
        """Updates of a run with a budget of `steps`."""
        return steps

    def state(self) -> dict[str, Any]:
        """What a checkpoint must keep of the schedule, as JSON; empty where all is planned."""
        return {}

    def load(self, state: dict[str, Any]) -> None:  # noqa: B027 - a planned schedule has nothing to restore
        """Restore what `state` returned."""


class BatchPerUpdate(StalenessSchedule):
    """A schedule in which update t consumes batch t whole, and holds batches t..t+k."""

    def select(self, update: int) -> list[Take]:
        """Batch t."""
        return [Take(update)]

    def evict(self, update: int) -> list[int]:
        """Batch t."""
        return [update]

    @property
    def capacity(self) -> int:
        """Batches t..t+k, some of them in flight or not complete."""
        return self.staleness + 1


def check_method(canonical: str, needs: frozenset[str], schedule: StalenessSchedule) -> None:
    """Refuse a method that a schedule cannot serve.

    Args:
        canonical: The method's expression.
        needs: Optional batch fields it reads.
        schedule: The schedule of its cell.

    Raises:
        UsageError: The method needs a proximal policy and the schedule trains on each rollout once.
    """
    if "proximal_logp" in needs and not schedule.several_updates:
        raise UsageError(
            f"{canonical}: needs a proximal policy, but with one update per batch it equals the current one and the "
            "ratio would always be 1; use anchor=behavior, or --regime minibatch with a lag above 0"
        )
