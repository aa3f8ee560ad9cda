"""`inflight`: weights that change while a response is being generated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.regimes.base import BatchPerUpdate, CellShape, Order
from vcpo_bench.bench.regimes.regime import Regime
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import choice, integer


class InflightSchedule(BatchPerUpdate):
    """Batch t begins under theta_{t-k} and its weights change every m tokens, then it waits until update t.

    Token j of batch t is drawn by theta_{t-k+floor(j/m)}; its first token has lag k. (PipelineRL, prime-rl, AReaL.)

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        every: Tokens m between two changes; 0 for ceil(T / (k+1)): as many changes as fit, at most k.

    Raises:
        UsageError: With this m the response would not be finished when it is consumed.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, every: int = 0) -> None:
        super().__init__(staleness, shape, publish_every)
        T = shape.tokens
        self.every = every or -(-T // (staleness + 1))
        self.changes = -(-T // self.every) - 1
        if self.changes > staleness:
            raise UsageError(
                f"--regime inflight(every={every}) --staleness {staleness}: {T} tokens need {self.changes} changes of "
                f"weights, more than the lag allows; use every={-(-T // (staleness + 1))} or more, or a larger lag"
            )

    def admit(self, update: int) -> list[Order]:
        """The next m tokens of every batch in flight; at the first update all that theta_0 draws in the fill."""
        orders = []
        for batch in range(update, update + self.staleness + 1):
            age = update - (batch - self.staleness)
            first = 0 if update == 0 else age
            if first <= self.changes:
                last = min(age, self.changes)
                stop = None if last == self.changes else (last + 1) * self.every
                orders.append(Order(batch, None, first * self.every, stop))
        return orders


@dataclass(frozen=True, kw_only=True)
class Inflight(Regime):
    """In-flight weight updates: a response is not restarted when new weights arrive.

    Attributes:
        every: Tokens between two changes of weights; 0: as many changes as fit, at most k.
        cache: Whether new weights attend to the keys and values of the old ones (`keep`) or compute them again
            (`recompute`).
    """

    name: ClassVar[str] = "inflight"
    summary: ClassVar[str] = "lag k at the first token, less at later ones: weights change within a response"
    splits_responses: ClassVar[bool] = True

    every: int = integer(0, minimum=0)
    cache: str = choice("keep", "recompute")

    @property
    def keeps_cache(self) -> bool:
        """With `cache=keep`."""
        return self.cache == "keep"

    def build(self, staleness: int, shape: CellShape) -> InflightSchedule:
        """See `Regime.build`."""
        return InflightSchedule(staleness, shape, self.publish_every, self.every)
