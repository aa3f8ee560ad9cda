"""`oldest-first`: reuse of recent data, what would soon be dropped before the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.reuse import Reuse, ReuseSchedule


class OldestFirstSchedule(ReuseSchedule):
    """Groups to reuse are the oldest that are held, so that each is reused once, as late as it can be."""

    def order(self, update: int, pool: Sequence[tuple[int, int]], draws: NDArray[np.float64]) -> NDArray[np.float64]:
        """`[n]` the places in the pool, which begins with the oldest."""
        return np.arange(len(pool), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class OldestFirst(Reuse):
    """A replay buffer that is emptied from its old end, as verl's can be."""

    name: ClassVar[str] = "oldest-first"
    summary: ClassVar[str] = "lag 0, and k for the share that is reused: the oldest groups held"

    def build(self, staleness: int, shape: CellShape) -> OldestFirstSchedule:
        """See `Regime.build`."""
        return OldestFirstSchedule(staleness, shape, self.publish_every, self.fraction)
