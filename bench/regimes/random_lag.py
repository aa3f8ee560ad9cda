"""`random`: each batch, or each trajectory, is consumed at a lag drawn from a law on 0..k."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.regimes.base import BatchPerUpdate, CellShape, Order
from vcpo_bench.bench.regimes.regime import Regime, short_number
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import Parameter, choice, custom


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
        logs = lags * math.log(center) - np.array([math.lgamma(lag + 1) for lag in lags])
        weights = np.exp(logs - logs.max())  # all of them underflow where the mean is far above k
    else:
        weights = np.ones(staleness + 1)
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


class RandomLagSchedule(BatchPerUpdate):
    """Update t consumes batch t; its lag, or that of each of its trajectories, is drawn from the law.

    The lag is drawn for the update that consumes, so that every update is full; theta_v then samples all that updates
    v..v+k need from it. No old weights are kept. While t < k, a lag above t is cut to t.

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
        """All that updates t..t+k need from theta_t."""
        orders = []
        for batch in range(update, update + self.staleness + 1):
            wanted = self.lags(batch) == batch - update
            if wanted.all():
                orders.append(Order(batch))
            elif wanted.any():
                orders.append(Order(batch, tuple(np.flatnonzero(wanted).tolist())))
        return orders


def _read_trace(text: str) -> tuple[int, ...]:
    """Lags written out as `[0 3 3 1]`, or a file of whole numbers separated by blanks, commas or lines."""
    if not text.startswith("["):
        if not Path(text).is_file():  # a pipe would be waited for, and a device has no end
            raise UsageError("is no file")
        try:
            text = Path(text).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot be read: {error}") from error
    lags = tuple(int(item) for item in re.split(r"[\s,]+", text.strip(" []\n")) if item)
    _check_trace(lags)
    if not lags:
        raise UsageError("there are no lags in it")
    return lags


def _check_trace(lags: Any) -> None:
    if not isinstance(lags, tuple) or any(not isinstance(lag, int) or lag < 0 for lag in lags):
        raise ValueError("must be a tuple of whole numbers, 0 or more")


_TRACE = Parameter(
    "a file of lags (whole numbers, 0 or more), or [0 3 3 1]",
    _read_trace,
    lambda lags: f"[{' '.join(map(str, lags))}]",
    _check_trace,
    "custom",
)


@dataclass(frozen=True, kw_only=True)
class RandomLag(Regime):
    """Queues of several samplers whose speeds differ, or a lag histogram that was measured elsewhere.

    Attributes:
        law: Law of the lag; see `lag_probabilities`.
        mean: Mean of the law before it is truncated to 0..k; 0: k/4 (geometric) or k/2 (Poisson).
        share: Probability of lag k (two-point).
        unit: Whether each batch or each trajectory has a lag of its own.
        trace: Lags in the order of updates (or of trajectories), repeated when they end; given, they are the law.
    """

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "lag drawn from a law on 0..k, per batch or per trajectory"

    law: str = choice("uniform", "geometric", "poisson", "two-point", "trace")
    mean: float = short_number(0.0)
    share: float = short_number(0.1, below=1.0)
    unit: str = choice("batch", "trajectory")
    trace: tuple[int, ...] = custom((), _TRACE)

    def __post_init__(self) -> None:
        """Refuse illegal values; a trace makes its own law."""
        super().__post_init__()
        if self.trace:
            object.__setattr__(self, "law", "trace")
        elif self.law == "trace":
            raise UsageError("random(law=trace) needs the lags: give a file of them, as in random(trace=lags.txt)")

    def build(self, staleness: int, shape: CellShape) -> RandomLagSchedule:
        """See `Regime.build`."""
        return RandomLagSchedule(
            staleness,
            shape,
            self.publish_every,
            probabilities=lag_probabilities(self.law, staleness, self.mean, self.share),
            trace=self.trace,
            per_trajectory=self.unit == "trajectory",
        )
