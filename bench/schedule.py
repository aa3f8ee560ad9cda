"""Which batch is sampled by which weights and consumed by which update: the controlled variable of this suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fifo:
    """Exact lag k by delayed consumption; no old weights are kept.

    Before update t the current policy theta_t samples the batches of ``sampled_before(t)``; update t consumes batch t.
    The pipeline is filled first: batches 0..k come from theta_0, so the lag of update t is min(t, k).

    Attributes:
        staleness: Lag k >= 0 in optimizer updates. 0 is synchronous training.
    """

    staleness: int

    def sampled_before(self, update: int) -> range:
        """Indices of the batches the policy samples just before ``update``."""
        return range(self.staleness + 1) if update == 0 else range(update + self.staleness, update + self.staleness + 1)

    def consumed_by(self, update: int) -> int:
        """Index of the batch that ``update`` consumes."""
        return update

    def lag(self, update: int) -> int:
        """Lag that ``update`` must realise, in optimizer updates."""
        return min(update, self.staleness)
