"""Asynchrony under a virtual clock, against what can be worked out by hand."""

import pytest

from vcpo_bench.bench.regimes import CellShape
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.simulation import describe, steps
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock, full_length
from vcpo_bench.errors import UsageError

SHAPE = CellShape(seed=0, prompts=8, responses=2, tokens=12)


def realized(k: int, times: ServiceTimes, drop: bool = False) -> tuple[float, list[int], AsyncSchedule]:
    """Updates per unit of time once the pipeline has filled, the lags of what was consumed, and the schedule."""
    schedule = AsyncSchedule(k, SHAPE, drop=drop)
    done = list(steps(schedule, times, 8, 200))
    lags = [t - version for t, (step, _) in enumerate(done) if t > k for version in step.versions.values()]
    return (len(done) - 1 - k) / (done[-1][1] - done[k][1]), lags, schedule


def test_synchronous_time_is_the_sum_and_asynchronous_time_the_maximum() -> None:
    times = ServiceTimes(sampler=3.0, learner=2.0)
    assert realized(0, times)[0] == pytest.approx(1 / 5)
    for k in (1, 4):
        speed, lags, _ = realized(k, times)
        assert speed == pytest.approx(1 / 3)
        assert max(lags) == 1
    assert set(realized(4, ServiceTimes(sampler=1.0, learner=2.0))[1]) == {4}, "k where the learner is the slower one"


def test_stragglers_are_dropped_within_the_bound() -> None:
    straggling = ServiceTimes(1.0, 1.0, straggler=0.05, slowdown=10.0)
    speed, lags, schedule = realized(2, straggling, drop=True)
    assert speed > realized(2, straggling)[0]
    assert max(lags) == 2 > sum(lags) / len(lags)
    lost = schedule.dropped.total()
    assert 0.01 < lost / (lost + schedule.trained) < 0.08


def test_the_learner_waits_for_the_first_batch_and_then_for_the_difference() -> None:
    times = ServiceTimes(sampler=3.0, learner=2.0)
    clock = VirtualClock(AsyncSchedule(1, SHAPE), 8, full_length(times, SHAPE), times.learner)
    waited = []
    for update in range(4):
        clock.take(update)
        waited.append(clock.waited)
    assert waited == [3.0, 4.0, 5.0, 6.0]


def test_spread_keeps_the_mean() -> None:
    times = ServiceTimes(2.0, 1.0, spread=0.5)
    found = [times.group(SHAPE, ticket, 6) for ticket in range(3000)]
    assert sum(found) / 3000 == pytest.approx(1.0, rel=0.05)
    assert times.group(SHAPE, 7, 12) == pytest.approx(2 * found[7])


def test_what_plan_shows_of_async() -> None:
    shown = describe("async(clock=virtual,sampler=0.5,learner=1)", 3, 12, seed=0)
    assert shown.endswith("lag max 3, mean 3, period 1 updates")
    with pytest.raises(UsageError, match="a real clock decides"):
        describe("async", 3, 12, 0)
