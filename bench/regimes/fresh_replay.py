"""`fresh-replay`: reuse of recent data, the fresher the likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.regime import short_number
from vcpo_bench.bench.regimes.reuse import Reuse, ReuseSchedule


class FreshReplaySchedule(ReuseSchedule):
    """Groups to reuse are drawn without repetition with weights exp(-age / tau) (FreshPER 2604.16918).

    The paper multiplies the weight by the size of the reward. A planned schedule knows no rewards: which data an update
    sees must not depend on the method. So this is the factor of age alone.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        fraction: See the base class.
        tau: Age at which the weight has fallen to 1/e, in updates.
    """

    def __init__(
        self, staleness: int, shape: CellShape, publish_every: int = 1, fraction: float = 0.5, tau: float = 500.0
    ) -> None:
        super().__init__(staleness, shape, publish_every, fraction)
        self.tau = tau

    def order(self, update: int, pool: Sequence[tuple[int, int]], draws: NDArray[np.float64]) -> NDArray[np.float64]:
        """`[n]` arrival times of a race: the first to arrive are a sample without repetition by weight."""
        age = np.array([update - batch for batch, _ in pool], dtype=np.float64)
        arrival: NDArray[np.float64] = np.log(-np.log1p(-draws)) + age / self.tau
        return arrival


@dataclass(frozen=True, kw_only=True)
class FreshReplay(Reuse):
    """A replay buffer that forgets gently.

    Attributes:
        tau: Age at which the chance to be reused has fallen to 1/e of a new group's, in updates.
    """

    name: ClassVar[str] = "fresh-replay"
    summary: ClassVar[str] = "lag 0, and 1..k for the share that is reused, the fresher the likelier"

    tau: float = short_number(500.0, minimum=0.01)

    def build(self, staleness: int, shape: CellShape) -> FreshReplaySchedule:
        """See `Regime.build`."""
        return FreshReplaySchedule(staleness, shape, self.publish_every, self.fraction, self.tau)
