"""The interface of every staleness regime: what is sampled when, and which update consumes it.

One version is one optimizer update: theta_t is the policy after t updates, and update t turns theta_t into theta_{t+1}.
Batch i names its prompts and its sampling noise, so data are common random numbers across regimes, lags and methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple


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
    """A regime at one lag: decides, never samples or trains.

    Before update t the trainer asks `admit(t)`, samples, trains on `select(t)`, then forgets `evict(t)`.
    In a deterministic regime each answer is a pure function of the arguments of the constructor and of t.

    Args:
        staleness: Largest lag k, in optimizer updates.
        shape: Sizes and seed of the cell.
        publish_every: Updates between two publications of weights to the sampler; adds 0..publish_every-1 to the lag.
    """

    deterministic = True
    several_updates = False
    """Whether a batch is trained on by more than one update, so that a proximal policy exists."""

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1) -> None:
        self.staleness, self.shape, self.publish_every = staleness, shape, publish_every

    @abstractmethod
    def admit(self, update: int) -> list[Order]:
        """What to sample just before `update`, in this order."""

    @abstractmethod
    def select(self, update: int) -> list[Take]:
        """What `update` consumes: always `shape.prompts` groups."""

    @abstractmethod
    def evict(self, update: int) -> list[int]:
        """Batches that nothing after `update` consumes."""

    def abort(self, update: int) -> list[int]:
        """Batches in flight to give up before `update`; a deterministic regime plans none."""
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
        """What a checkpoint must keep of the schedule, as JSON; nothing where all is planned."""
        return {}

    def load(self, state: dict[str, Any]) -> None:  # noqa: B027 - a planned schedule has nothing to take up
        """Take up what `state` gave."""
