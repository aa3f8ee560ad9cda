"""Speed on paper, against what can be worked out by hand."""

import pytest
from typer.testing import CliRunner

from vcpo_bench.bench.regimes import CellShape
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.simulation import describe, describe_speed, simulate, synchronous
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock, full_length
from vcpo_bench.cli import app
from vcpo_bench.errors import UsageError

SHAPE = CellShape(seed=0, prompts=8, responses=2, tokens=12)


def gain(k: int, times: ServiceTimes, drop: bool = False, slots: int = 8) -> float:
    fast = simulate(AsyncSchedule(k, SHAPE, drop=drop), times, slots, 200).updates_per_second
    return fast / synchronous(SHAPE, times, slots, 200).updates_per_second


def test_synchronous_time_is_the_sum_and_asynchronous_time_the_maximum() -> None:
    times = ServiceTimes(sampler=3.0, learner=2.0)
    assert synchronous(SHAPE, times, 8, 50).updates_per_second == pytest.approx(1 / 5)
    for k in (1, 4):
        found = simulate(AsyncSchedule(k, SHAPE), times, 8, 50)
        assert found.updates_per_second == pytest.approx(1 / 3)
        assert found.learner_busy == pytest.approx(2 / 3)
        assert found.sampler_busy == pytest.approx(1)
        assert found.max_lag == 1
    found = simulate(AsyncSchedule(4, SHAPE), ServiceTimes(sampler=1.0, learner=2.0), 8, 50)
    assert (found.mean_lag, found.max_lag) == (4, 4)  # k is reached when the learner is the slower one
    assert found.sampler_busy == pytest.approx(0.5)


def test_the_learner_waits_for_the_first_batch_and_then_for_the_difference() -> None:
    times = ServiceTimes(sampler=3.0, learner=2.0)
    clock = VirtualClock(AsyncSchedule(1, SHAPE), 8, full_length(times, SHAPE), times.learner)
    waited = []
    for update in range(4):
        clock.take(update)
        waited.append(clock.waited)
    assert waited == [3.0, 4.0, 5.0, 6.0]


def test_fewer_slots_are_a_smaller_sampler() -> None:
    times = ServiceTimes(sampler=1.0, learner=0.5)
    assert synchronous(SHAPE, times, 4, 30).updates_per_second == pytest.approx(1 / 2.5)
    assert simulate(AsyncSchedule(3, SHAPE), times, 4, 30).updates_per_second == pytest.approx(1 / 2)


def test_stragglers_and_spread_make_asynchrony_worth_more() -> None:
    even = gain(4, ServiceTimes(1.0, 1.0))
    assert even == pytest.approx(2.0, rel=0.02)
    straggling = ServiceTimes(1.0, 1.0, straggler=0.05, slowdown=10.0)
    assert gain(4, straggling, drop=True) > gain(4, straggling) > even
    assert gain(4, ServiceTimes(1.0, 1.0, spread=1.0)) > even
    found = simulate(AsyncSchedule(2, SHAPE, drop=True), straggling, 8, 200)
    assert 0.01 < found.dropped < 0.08
    assert found.max_lag <= 2


def test_spread_keeps_the_mean() -> None:
    times = ServiceTimes(2.0, 1.0, spread=0.5)
    found = [times.group(SHAPE, ticket, 6) for ticket in range(3000)]
    assert sum(found) / 3000 == pytest.approx(1.0, rel=0.05)
    assert times.group(SHAPE, 7, 12) == pytest.approx(2 * found[7])


def test_what_plan_shows_of_async() -> None:
    shown = describe("async(clock=virtual,sampler=0.5,learner=1)", 3, 12, seed=0)
    assert shown.endswith("lag max 3, mean 3, period 1 updates")
    speed = describe_speed("async(sampler=1,learner=1)", 3, 50, seed=0)
    assert speed.endswith("2.00 times the updates of split synchronous training")
    assert len({len(line) for line in speed.splitlines()[:3]}) == 1
    for wrong in (
        lambda: describe("async", 3, 12, 0),
        lambda: describe_speed("fifo", 3, 12, 0),
        lambda: describe_speed("async", 3, 12, 0),
        lambda: describe_speed("async(sampler=1,learner=1)", 3, 2, 0),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_the_command() -> None:
    drawn = CliRunner().invoke(app, ["lab", "plan", "--regime", "minibatch", "--staleness", "3", "--steps", "9"])
    assert drawn.exit_code == 0
    assert drawn.output.splitlines()[-1] == "lag max 3, mean 1.5, period 4 updates"
    fast = CliRunner().invoke(
        app, ["lab", "plan", "--simulate", "--regime", "async(sampler=1,learner=1)", "--steps", "50"]
    )
    assert "2.00 times" in fast.output
    wrong = CliRunner().invoke(app, ["lab", "plan", "--regime", "minibach"])
    assert wrong.exit_code == 2
    assert "did you mean minibatch" in wrong.output
