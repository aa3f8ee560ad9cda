"""`replay`: reuse of recent data, so that a part of every update has been trained on before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take
from vcpo_bench.bench.regimes.regime import Regime, short_number
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.errors import UsageError


class ReuseSchedule(StalenessSchedule):
    """Update t trains on fresh groups from theta_t and on groups drawn from the fresh ones of the last k updates.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        fraction: Share of the P groups that is reused, rounded to whole groups; one group is always fresh.

    Raises:
        UsageError: A share above 0 rounds to no group, so that every lag would be 0.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, fraction: float = 0.5) -> None:
        super().__init__(staleness, shape, publish_every)
        self.reused = min(round(fraction * shape.prompts), shape.prompts - 1) if staleness else 0
        self.trains_once = not self.reused
        if staleness and fraction and not self.reused:
            raise UsageError(
                f"--prompts {shape.prompts}: fraction={fraction:g} of them rounds to no prompt to reuse, so every "
                "lag would be 0; give more prompts or a larger fraction"
            )

    def groups(self, batch: int) -> int:
        """All P groups of the first batch, the fresh share of the others."""
        return self.shape.prompts - (self.reused if batch else 0)

    def admit(self, update: int) -> list[Order]:
        """Batch t."""
        return [Order(update)]

    def select(self, update: int) -> list[Take]:
        """Batch t, and groups of batches t-k..t-1 without repetition."""
        fresh = [Take(update)]
        if update == 0 or not self.reused:
            return fresh
        held = range(max(0, update - self.staleness), update)
        pool = [(batch, group) for batch in held for group in range(self.groups(batch))]
        draws = uniforms(self.shape.seed, "replay", update, 1, len(pool))[0]
        chosen = np.sort(np.argsort(self.order(update, pool, draws), kind="stable")[: self.reused])
        while len(chosen) < self.reused:  # more wanted than held: some groups come more than once
            chosen = np.concatenate([chosen, chosen])[: self.reused]
        return fresh + [Take(pool[i][0], (pool[i][1],)) for i in chosen.tolist()]

    def order(self, update: int, pool: Sequence[tuple[int, int]], draws: NDArray[np.float64]) -> NDArray[np.float64]:
        """`[n]` the groups with the smallest of these numbers are reused; here each is as likely as another.

        Args:
            update: Number of the update.
            pool: Batch and group of what is held, the oldest batch first.
            draws: `[n]` uniform numbers, one per group.
        """
        return draws

    def evict(self, update: int) -> list[int]:
        """The batch that is k updates old."""
        return [update - self.staleness] if update >= self.staleness else []

    @property
    def capacity(self) -> int:
        """Batch t and the k before it."""
        return self.staleness + 1


@dataclass(frozen=True, kw_only=True)
class Reuse(Regime):
    """A replay buffer that holds the last k batches.

    Attributes:
        fraction: Share of every update that has been trained on before.
    """

    name: ClassVar[str] = "replay"
    summary: ClassVar[str] = "lag 0, and 1..k for the share that is reused"

    fraction: float = short_number(0.5, below=1.0)

    def build(self, staleness: int, shape: CellShape) -> ReuseSchedule:
        """See `Regime.build`."""
        return ReuseSchedule(staleness, shape, self.publish_every, self.fraction)
