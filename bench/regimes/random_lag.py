"""Random lag: each batch, or each trajectory, is consumed at a lag drawn from a law on 0..k."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.errors import UsageError

LAWS = ("uniform", "geometric", "poisson", "two-point", "trace")


def lag_probabilities(law: str, staleness: int, mean: float, share: float) -> NDArray[np.float64]:
    """`[k + 1]` probability of each lag 0..k.

    Args:
        law: `uniform`; `geometric` or `poisson` truncated to 0..k; `two-point`: k with probability `share`,
            else 0 (stragglers).
        staleness: Largest lag k.
        mean: Mean of the untruncated law; 0 for k/4 (geometric) or k/2 (Poisson).
        share: Probability of the large lag.
    """
    lags = np.arange(staleness + 1)
    if law == "two-point":
        weights = np.where(lags == 0, 1 - share, 0.0)
        weights[-1] += share
    elif law == "geometric":
        center = mean or max(staleness / 4, 1e-9)
        weights = np.exp(lags * math.log(center / (1 + center)))
    elif law == "poisson":
        center = mean or max(staleness / 2, 1e-9)
        weights = np.exp(lags * math.log(center) - center - np.array([math.lgamma(lag + 1) for lag in lags]))
    else:
        weights = np.ones(staleness + 1)
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


class Lottery(StalenessSchedule):
    """Update t consumes batch t; its lag, or that of each of its trajectories, is drawn from the law.

    The draw is made for the update that consumes, so that every update is full; theta_v then samples all that updates
    v..v+k will want from it. No old weights are kept. While t < k a lag above t is cut to t.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        probabilities: `[k + 1]` of the lags; unused with a trace.
        trace: Lags in the order of updates (or of trajectories), repeated when it ends.
        per_trajectory: Draw for each trajectory instead of each batch.

    Raises:
        UsageError: The trace has a lag above k.
    """

    def __init__(
        self,
        staleness: int,
        shape: CellShape,
        publish_every: int = 1,
        *,
        probabilities: NDArray[np.float64],
        trace: Sequence[int] = (),
        per_trajectory: bool = False,
    ) -> None:
        super().__init__(staleness, shape, publish_every)
        if trace and max(trace) > staleness:
            raise UsageError(
                f"--regime random(trace=...) --staleness {staleness}: the trace has a lag of {max(trace)}; "
                f"give --staleness {max(trace)}"
            )
        self.cumulative = np.cumsum(probabilities)
        self.trace = np.asarray(trace, dtype=np.int64)
        self.draws = shape.prompts * shape.responses if per_trajectory else 1
        self._known: dict[int, NDArray[np.int64]] = {}

    def lags(self, update: int) -> NDArray[np.int64]:
        """`[1]` lag of the batch of `update`, or `[P G]` of its trajectories."""
        if update not in self._known:
            self._known = {t: lags for t, lags in self._known.items() if t >= update - self.staleness}
            self._known[update] = np.minimum(self._draw(update), update)
        return self._known[update]

    def _draw(self, update: int) -> NDArray[np.int64]:
        if self.trace.size:
            lags: NDArray[np.int64] = self.trace[
                np.arange(update * self.draws, (update + 1) * self.draws) % self.trace.size
            ]
            return lags
        uniform = uniforms(self.shape.seed, "lag", update, self.draws, 1)[:, 0]
        return np.minimum(np.searchsorted(self.cumulative, uniform, side="right"), self.staleness)

    def admit(self, update: int) -> list[Order]:
        """Whatever updates t..t+k want from theta_t."""
        orders = []
        for batch in range(update, update + self.staleness + 1):
            wanted = self.lags(batch) == batch - update
            if wanted.all():
                orders.append(Order(batch))
            elif wanted.any():
                orders.append(Order(batch, tuple(np.flatnonzero(wanted).tolist())))
        return orders

    def select(self, update: int) -> list[Take]:
        """Batch t."""
        return [Take(update)]

    def evict(self, update: int) -> list[int]:
        """Batch t."""
        return [update]

    @property
    def capacity(self) -> int:
        """Batches t..t+k, some of them not complete."""
        return self.staleness + 1
