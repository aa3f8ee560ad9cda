"""`minibatch`: one rollout cut into several updates, so that the lag is a sawtooth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take
from vcpo_bench.bench.regimes.regime import Regime
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import integer


class MinibatchSchedule(StalenessSchedule):
    """A rollout of M batches from one policy feeds N = k + 1 = M x epochs updates: the lag runs 0..k, then restarts.

    Within an epoch the M P groups are shuffled (seeded) and cut into M updates. The proximal policy is the one at the
    first update on the rollout. (GRPO's minibatches and mu epochs; VESPO 2602.10693 with N = 8..64.)

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        epochs: Times each trajectory is trained on; divides k + 1.

    Raises:
        UsageError: `epochs` does not divide k + 1.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, epochs: int = 1) -> None:
        super().__init__(staleness, shape, publish_every)
        self.period = staleness + 1
        if self.period % epochs:
            raise UsageError(
                f"--regime minibatch(epochs={epochs}) --staleness {staleness}: lag k needs k + 1 updates per rollout, "
                f"and {epochs} does not divide {self.period}; choose k + 1 a multiple of the epochs"
            )
        self.epochs, self.batches = epochs, self.period // epochs
        self.several_updates, self.trains_once = self.period > 1, epochs == 1

    def _rollout(self, update: int) -> range:
        first = update // self.period * self.batches
        return range(first, first + self.batches)

    def admit(self, update: int) -> list[Order]:
        """A whole rollout at the start of its cycle."""
        return [Order(batch) for batch in self._rollout(update)] if update % self.period == 0 else []

    def select(self, update: int) -> list[Take]:
        """The next P groups of the shuffled rollout."""
        rollout = self._rollout(update)
        if self.batches == 1:
            return [Take(rollout[0])]
        epoch, chunk = divmod(update % self.period, self.batches)
        P = self.shape.prompts
        draws = uniforms(
            self.shape.seed, "minibatch", update // self.period * self.epochs + epoch, 1, self.batches * P
        )[0]
        chosen = np.argsort(draws, kind="stable")[chunk * P : (chunk + 1) * P]
        return [Take(rollout[int(group) // P], (int(group) % P,)) for group in chosen]

    def evict(self, update: int) -> list[int]:
        """The rollout, after its last update."""
        return list(self._rollout(update)) if update % self.period == self.period - 1 else []

    def proximal(self, update: int) -> list[int]:
        """The rollout, at its first update."""
        return list(self._rollout(update)) if self.several_updates and update % self.period == 0 else []

    @property
    def capacity(self) -> int:
        """One rollout."""
        return self.batches

    def filling(self, update: int) -> bool:
        """Never: the first cycle is like every other."""
        return False


@dataclass(frozen=True, kw_only=True)
class Minibatch(Regime):
    """The updates of GRPO and PPO on one rollout.

    Attributes:
        epochs: Times each trajectory is trained on; divides k + 1.
    """

    name: ClassVar[str] = "minibatch"
    summary: ClassVar[str] = "lag 0..k in turn: one rollout cut into k + 1 updates"

    epochs: int = integer(1, minimum=1)

    def build(self, staleness: int, shape: CellShape) -> MinibatchSchedule:
        """See `Regime.build`."""
        return MinibatchSchedule(staleness, shape, self.publish_every, self.epochs)
