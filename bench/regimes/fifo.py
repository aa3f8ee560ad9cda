"""`fifo`: exact lag k by delayed consumption, without copies of old weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.bench.regimes.base import BatchPerUpdate, CellShape, Order
from vcpo_bench.bench.regimes.regime import Regime
from vcpo_bench.naming.parameters import choice


class FifoSchedule(BatchPerUpdate):
    """Update t consumes batch t, sampled by theta_{t-k}: the current policy samples, consumption waits.

    The pipeline is filled first: batches 0..k come from theta_0, so the lag of update t is min(t, k).

    Args:
        staleness: Lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        hold: Count the budget of updates from update k on, when the lag is k, instead of from the start.
    """

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, hold: bool = False) -> None:
        super().__init__(staleness, shape, publish_every)
        self.hold = hold

    def admit(self, update: int) -> list[Order]:
        """Batch t + k; at the first update batches 0..k."""
        first = 0 if update == 0 else update + self.staleness
        return [Order(batch) for batch in range(first, update + self.staleness + 1)]

    def updates(self, steps: int) -> int:
        """The budget; with `hold`, after the k updates that fill the pipeline."""
        return steps + self.staleness if self.hold else steps


@dataclass(frozen=True, kw_only=True)
class Fifo(Regime):
    """The pipeline of a queue that is always full.

    Attributes:
        fill: Whether the budget of updates counts the k updates that fill the pipeline (`ramp`) or not (`hold`).
    """

    name: ClassVar[str] = "fifo"
    summary: ClassVar[str] = "lag exactly k: consumption waits k updates"
    whole_batches: ClassVar[bool] = True

    fill: str = choice("ramp", "hold")

    def build(self, staleness: int, shape: CellShape) -> FifoSchedule:
        """See `Regime.build`."""
        return FifoSchedule(staleness, shape, self.publish_every, hold=self.fill == "hold")
