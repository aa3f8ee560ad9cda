"""How long sampling a group and an update take, where sampler and learner work at the same time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.streams import uniforms


@dataclass(frozen=True)
class ServiceTimes:
    """How long a group and an update take. Seconds under a real clock, any unit under a virtual one.

    Attributes:
        sampler: Time of a group whose longest response has T tokens; a shorter one takes proportionally less.
        learner: Time of an update.
        straggler: Probability that a group is a straggler, drawn from a seeded stream.
        slowdown: Factor by which a straggler takes longer.
        spread: Standard deviation of the logarithm of a group's time, whose mean does not change.
        call: Time the environment takes for a call.
        slow_calls: Probability that a call takes `slowdown` times as long, drawn from a seeded stream.
    """

    sampler: float
    learner: float
    straggler: float = 0.0
    slowdown: float = 10.0
    spread: float = 0.0
    call: float = 0.0
    slow_calls: float = 0.0

    def group(self, shape: CellShape, ticket: int, length: int, calls: Sequence[int] = ()) -> float:
        """Time of one group: that of its tokens, then the longest that the environment keeps one of its responses.

        Args:
            shape: Sizes and seed of the cell.
            ticket: The group.
            length: Tokens that the policy drew of its longest response.
            calls: Calls of each of its G responses, which wait side by side; empty: there is no environment.
        """
        factor = 1.0
        batch, group = divmod(ticket, shape.prompts)
        if self.straggler and uniforms(shape.seed, "straggler", batch, group + 1, 1)[group, 0] < self.straggler:
            factor = self.slowdown
        if self.spread:
            draw = uniforms(shape.seed, "service", batch, group + 1, 1)[group, 0]
            normal = NormalDist().inv_cdf(max(draw, 2.0**-54))
            factor *= math.exp(self.spread * normal - self.spread**2 / 2)
        return self.sampler * factor * length / shape.tokens + self._environment(shape, ticket, calls)

    def _environment(self, shape: CellShape, ticket: int, calls: Sequence[int]) -> float:
        """Time until the environment has answered all calls of the response that waits longest."""
        most = max(calls, default=0)
        if not (self.call and most):
            return 0.0
        batch, group = divmod(ticket, shape.prompts)
        first = group * shape.responses
        slow = uniforms(shape.seed, "slow calls", batch, first + shape.responses, most)[first:] < self.slow_calls
        rows = zip(calls, slow, strict=True)
        return max(self.call * (count + (self.slowdown - 1) * float(drawn[:count].sum())) for count, drawn in rows)


class TwoStations(NamedTuple):
    """Sampler and learner as two stations that work at the same time.

    Attributes:
        times: How long each of them takes.
        slots: Groups the sampler works on at once; 0: as many as an update consumes.
    """

    times: ServiceTimes
    slots: int = 0
