"""Sources of batches: the interface, and the one that carries out a deterministic schedule."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter
from typing import Any, Protocol

from torch import Tensor

from vcpo_bench.bench.feeding.batch_generator import BatchGenerator, Draft
from vcpo_bench.bench.regimes.base import StalenessSchedule, Take
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.trajectories import Trajectories, join


@dataclass(frozen=True, slots=True)
class StepInput:
    """What one update receives.

    Attributes:
        batch: What it consumes.
        sampled_reward: Mean reward of the newest batch that is complete.
        filling: Whether the pipeline of batches is still filling.
        seconds_sample: Seconds of sampling in this process, and of scores under the proximal policy, where wanted.
        facts: Further columns of `records.steps.STEPS` that only this source knows.
        events: Rows of `records.EVENTS` since the last update.
    """

    batch: Trajectories
    sampled_reward: float
    filling: bool
    seconds_sample: float
    facts: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)


class Source(Protocol):
    """Hands batches to a learner; its state can be saved and loaded."""

    @abstractmethod
    def next_batch(self, update: int) -> StepInput:
        """The batch of `update`; called once per update, in order, while the policy has seen `update` updates."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All data sampled and not yet consumed, and the published weights, for a checkpoint.

        By name: `queue/BATCH/FIELD` as in `Trajectories` ([N, ...], N the trajectories of a batch), `draft/...` for
        responses in flight, and `engine/NAME` in the shape of the parameter.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The remaining state for a checkpoint, as JSON."""

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Load what `tensors` and `state` returned before `update`."""

    def close(self) -> None:
        """Release processes and memory."""


class PlannedSource:
    """Samples in this process, exactly as a deterministic schedule plans, and asserts the realized lag.

    Args:
        schedule: The regime.
        generator: Carries out its orders.
        proximal: Computes `[P, G, T]` log-probabilities of a batch under the learner's policy; None where the method
            does not need those of the proximal policy.

    Attributes:
        queue: Complete batches that a later update consumes, by index.
    """

    def __init__(
        self,
        schedule: StalenessSchedule,
        generator: BatchGenerator,
        proximal: Callable[[Trajectories], Tensor] | None = None,
    ) -> None:
        self.schedule, self.generator, self.proximal = schedule, generator, proximal
        self.queue: dict[int, Trajectories] = {}
        self.sampled_reward = 0.0
        self._resume_at(0)

    def _resume_at(self, update: int) -> None:
        self._plan = islice(plan(self.schedule, update + 10**9), update, None)

    def next_batch(self, update: int) -> StepInput:
        """Sample what is due, then return the batch of `update`.

        Raises:
            AssertionError: The realized lags differ from the planned ones.
        """
        began = perf_counter()
        published = self.generator.published
        published.publish(update)
        orders = self.schedule.admit(update)
        groups = [self.schedule.groups(order.batch) for order in orders]
        fresh = self.generator.run(orders, self.schedule.version(update), groups)
        self.queue.update({batch.index: batch for batch in fresh})
        if fresh:
            self.sampled_reward = float(fresh[-1].reward.mean())
        if self.proximal:
            for index in self.schedule.proximal(update):
                self.queue[index] = replace(self.queue[index], proximal_logp=self.proximal(self.queue[index]))
        sampled = perf_counter()
        batch = self._join(update, self.schedule.select(update))
        for index in self.schedule.evict(update):
            del self.queue[index]
        self._check(batch, update)
        return StepInput(batch, self.sampled_reward, self.schedule.filling(update), sampled - began)

    def begin(self, update: int) -> list[Draft]:
        """The batches that `next_batch` will draw before `update`, in order, with prompts and noise."""
        orders = self.schedule.admit(update)
        return self.generator.begin(orders, [self.schedule.groups(order.batch) for order in orders])

    def _join(self, update: int, takes: list[Take]) -> Trajectories:
        if len(takes) == 1 and takes[0].groups is None:
            return self.queue[takes[0].batch]
        parts = [self.queue[t.batch] if t.groups is None else self.queue[t.batch].take(t.groups) for t in takes]
        return join(update, parts)

    def _check(self, batch: Trajectories, update: int) -> None:
        realized = Counter((update - batch.oldest()).flatten().tolist())
        planned = next(self._plan).lags
        if realized != planned:
            raise AssertionError(f"update {update}: realized lag {dict(realized)}, not {dict(planned)}")

    def tensors(self) -> dict[str, Tensor]:
        """The queue, responses in flight and the published weights; names and shapes as in `Source.tensors`."""
        tensors = {f"queue/{i}/{name}": t for i, batch in self.queue.items() for name, t in batch.tensors().items()}
        tensors |= {f"draft/{name}": tensor for name, tensor in self.generator.tensors().items()}
        return tensors | {f"engine/{name}": tensor for name, tensor in self.generator.published.tensors().items()}

    def state(self) -> dict[str, Any]:
        """The newest reward, and the state of the schedule."""
        return {"sampled_reward": self.sampled_reward, "schedule": self.schedule.state()}

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Load what `tensors` and `state` returned before `update`."""
        queue = under(tensors, "queue/")
        indices = sorted({int(name.split("/")[0]) for name in queue})
        self.queue = {i: Trajectories(i, **under(queue, f"{i}/")) for i in indices}
        self.generator.published.load(under(tensors, "engine/"))
        self.generator.load(under(tensors, "draft/"))
        self.sampled_reward = float(state["sampled_reward"])
        self.schedule.load(state["schedule"])
        self._resume_at(update)

    def close(self) -> None:
        """Release the sampler."""
        self.generator.published.close()


def under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, under their names without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
