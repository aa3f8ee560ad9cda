"""Exact lag k by delayed consumption; no old weights are kept."""

from __future__ import annotations

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take


class Fifo(StalenessSchedule):
    """Update t consumes batch t, sampled by theta_{t-k}: the current policy samples, consumption waits.

    The pipeline is filled first: batches 0..k come from theta_0, so the lag of update t is min(t, k).

    Args:
        staleness: Lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        hold: Count the budget from update k on, when the lag is k; else (`ramp`) from the start.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, hold: bool = False) -> None:
        super().__init__(staleness, shape, publish_every)
        self.hold = hold

    def admit(self, update: int) -> list[Order]:
        """Batch t + k; at the first update batches 0..k."""
        first = 0 if update == 0 else update + self.staleness
        return [Order(batch) for batch in range(first, update + self.staleness + 1)]

    def select(self, update: int) -> list[Take]:
        """Batch t."""
        return [Take(update)]

    def evict(self, update: int) -> list[int]:
        """Batch t."""
        return [update]

    @property
    def capacity(self) -> int:
        """Batches t..t+k."""
        return self.staleness + 1

    def updates(self, steps: int) -> int:
        """The budget, and with `hold` the k updates of the fill before it."""
        return steps + self.staleness if self.hold else steps
