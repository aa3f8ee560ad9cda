"""From a regime's name and a lag to its schedule."""

from __future__ import annotations

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.expression import Regime
from vcpo_bench.bench.regimes.fifo import Fifo
from vcpo_bench.bench.regimes.inflight import Inflight
from vcpo_bench.bench.regimes.minibatch import Minibatch
from vcpo_bench.bench.regimes.random_lag import Lottery, lag_probabilities
from vcpo_bench.bench.regimes.reuse import Replay
from vcpo_bench.bench.regimes.virtual_clock import ServiceTimes
from vcpo_bench.errors import UsageError


def build_schedule(regime: Regime, staleness: int, shape: CellShape) -> StalenessSchedule:
    """The schedule of a cell.

    Raises:
        UsageError: The options do not fit the lag or the sizes.
    """
    publish: int = regime["publish_every"]
    if regime.name == "async":
        return AsyncSchedule(staleness, shape, publish, drop=regime["overflow"] == "drop")
    if staleness == 0 or regime.name == "fifo":
        return Fifo(staleness, shape, publish, hold=staleness > 0 and regime["fill"] == "hold")
    if regime.name == "minibatch":
        return Minibatch(staleness, shape, publish, epochs=regime["epochs"])
    if regime.name == "inflight":
        return Inflight(staleness, shape, publish, every=regime["every"])
    if regime.name == "replay":
        return Replay(staleness, shape, publish, fraction=regime["fraction"])
    return Lottery(
        staleness,
        shape,
        publish,
        probabilities=lag_probabilities(regime["law"], staleness, regime["mean"], regime["share"]),
        trace=regime["trace"],
        per_trajectory=regime["unit"] == "trajectory",
    )


def check_method(canonical: str, needs: frozenset[str], schedule: StalenessSchedule) -> None:
    """Refuse a method that the regime cannot serve.

    Raises:
        UsageError: The method needs a proximal policy and the regime trains on each batch once.
    """
    if "proximal_logp" in needs and not schedule.several_updates:
        raise UsageError(
            f"{canonical}: needs a proximal policy, but with one update per batch it equals the current one and the "
            "ratio would always be 1; use anchor=behavior, or --regime minibatch with a lag above 0"
        )


def service_times(regime: Regime) -> ServiceTimes:
    """The service times of an `async` regime; under the virtual clock, what is not given takes one unit."""
    least = 1.0 if regime["clock"] == "virtual" else 0.0
    return ServiceTimes(
        sampler=regime["sampler"] or least,
        learner=regime["learner"] or least,
        straggler=regime["straggler"],
        slowdown=regime["slowdown"],
        spread=regime["spread"],
    )
