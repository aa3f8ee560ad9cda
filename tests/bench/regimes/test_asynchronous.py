"""The asynchronous schedule and the virtual clock without a model: bounds, conservation, golden plans, drops."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)
GOLDEN = Path(__file__).parents[2] / "golden" / "async_plans.json"


def tickets(orders) -> list[int]:
    return [order.batch * 4 + order.rows[0] // 2 for order in orders]


def clock(k: int, times: ServiceTimes, drop: bool = False, slots: int = 4) -> VirtualClock:
    schedule = AsyncSchedule(k, SHAPE, drop=drop)
    begin = lambda started, _: [times.group(SHAPE, ticket, 12) for ticket in started]  # noqa: E731
    return VirtualClock(schedule, slots, begin, times.learner)


@pytest.mark.parametrize("k", [0, 1, 4])
def test_the_gate_lets_start_what_k_updates_can_still_want(k: int) -> None:
    schedule = AsyncSchedule(k, SHAPE)
    assert schedule.may_start(0) == (k + 1) * 4
    assert tickets(schedule.admit(0)) == list(range((k + 1) * 4))
    assert schedule.admit(0) == []
    for ticket in reversed(range(4)):
        assert schedule.select(0) == []
        assert schedule.accept(ticket, 0) == "accepted"
    assert [take.groups for take in schedule.select(0)] == [(0,), (1,), (2,), (3,)]
    assert schedule.admit(0) == []
    assert tickets(schedule.admit(1)) == list(range((k + 1) * 4, (k + 2) * 4))
    assert len(schedule.running) == schedule.capacity * 4
    assert [schedule.filling(update) for update in range(6)] == [update < k for update in range(6)]


def test_wait_is_in_order_and_drop_takes_what_is_there() -> None:
    for drop in (False, True):
        schedule = AsyncSchedule(1, SHAPE, drop=drop)
        schedule.admit(0)
        for ticket in (1, 2, 3, 4, 5):  # 0 is a straggler
            schedule.begun(ticket, 0)
            schedule.accept(ticket, 0)
        takes = schedule.select(0)
        assert (
            takes == []
            if not drop
            else [(t.batch, t.groups) for t in takes] == [(0, (1,)), (0, (2,)), (0, (3,)), (1, (0,))]
        )


def test_drop_gives_up_what_is_too_old_in_the_queue_and_in_flight_but_not_what_has_not_begun() -> None:
    schedule = AsyncSchedule(1, SHAPE, drop=True)
    schedule.admit(0)
    for ticket in range(7):
        schedule.begun(ticket, 0)
    for ticket in range(1, 6):
        schedule.accept(ticket, 0)
    assert schedule.select(0)
    assert schedule.evict(1) == schedule.abort(1) == []
    assert schedule.evict(2) == [5]
    assert schedule.abort(2) == [0, 6]
    assert set(schedule.running) == {7}
    assert schedule.accept(0, 0) == "late"
    assert schedule.dropped == {"in the queue": 1, "in flight": 2}
    assert schedule.conserved()
    assert schedule.may_start(1) == (1 + 1 + 1) * 4 - 4 - 1


def test_nothing_is_taken_twice() -> None:
    schedule = AsyncSchedule(0, SHAPE)
    schedule.admit(0)
    assert schedule.accept(0, 0) == "accepted"
    assert schedule.accept(0, 0) == "duplicate"
    for ticket in (1, 2, 3):
        schedule.accept(ticket, 0)
    schedule.select(0)
    assert schedule.accept(0, 0) == "late"
    assert schedule.accept(99, 0) == "late"
    assert schedule.trained == 4


def test_lost_tickets_start_again_before_new_ones() -> None:
    schedule = AsyncSchedule(1, SHAPE)
    schedule.admit(0)
    for ticket in (6, 2):
        schedule.lose(ticket)
    assert schedule.conserved()
    assert tickets(schedule.admit(0)) == [2, 6]
    assert schedule.next_ticket == 8


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(0, 5), drop=st.booleans())
def test_whatever_happens_lag_is_bounded_and_every_ticket_accounted_for(seed: int, k: int, drop: bool) -> None:
    """Random starts, deliveries, losses, duplicates, and saving in between."""
    choose, schedule, update, consumed = random.Random(seed), AsyncSchedule(k, SHAPE, drop=drop), 0, set()
    for _ in range(300):
        act = choose.choice(["admit", "begin", "deliver", "deliver", "deliver", "lose", "update", "save"])
        running = sorted(schedule.running)
        if act == "admit":
            schedule.admit(update)
        elif act == "begin" and running:
            schedule.begun(choose.choice(running), update)
        elif act == "deliver" and running:
            ticket = choose.choice(running)
            version = schedule.running[ticket] if schedule.running[ticket] >= 0 else update
            assert schedule.accept(ticket, version) == "accepted"
            assert schedule.accept(ticket, version) == "duplicate"
        elif act == "lose" and running:
            schedule.lose(choose.choice(running))
        elif act == "update":
            schedule.evict(update), schedule.abort(update)
            before = dict(schedule.ready)
            takes = schedule.select(update)
            for take in takes:
                ticket = schedule.ticket(take.batch, take.groups[0])
                assert ticket not in consumed
                assert update - before[ticket] <= k
                consumed.add(ticket)
            update += bool(takes)
        elif act == "save":
            stored = json.loads(json.dumps(schedule.state()))
            schedule = AsyncSchedule(k, SHAPE, drop=drop)
            schedule.load(stored)
        assert schedule.conserved()
        assert len(schedule.ready) + len(schedule.running) <= schedule.capacity * 4
        if not drop:
            assert consumed == set(range(update * 4))


def lags(subject: VirtualClock, updates: int) -> list[Counter[int]]:
    return [Counter(u - version for version in subject.take(u).versions.values()) for u in range(updates)]


def test_a_fast_sampler_gives_exactly_k_and_a_slow_one_lag_below_two() -> None:
    """k is a capacity, not a lag: what is realized depends on the ratio of the service times."""
    fast = lags(clock(5, ServiceTimes(sampler=0.5, learner=2.0)), 30)
    assert fast[10:] == [{5: 4}] * 20
    slow = lags(clock(5, ServiceTimes(sampler=3.0, learner=1.0)), 30)
    assert all(max(each) <= 1 for each in slow[1:])


def test_times_add_up() -> None:
    subject = clock(3, ServiceTimes(sampler=1.0, learner=2.0))
    steps = [subject.take(update) for update in range(20)]
    assert subject.now == pytest.approx(1 + 20 * 2)
    assert subject.waited == pytest.approx(1)
    assert [t for _, t in steps[12].times.values()] == pytest.approx([steps[12].times[48][1]] * 4)
    assert {round(flight, 9) for step in steps for flight, _ in step.times.values()} == {1.0}
    assert np.mean([step.busy for step in steps[8:]]) == pytest.approx(0.5)


def test_waiting_for_a_straggler_or_dropping_it() -> None:
    times = ServiceTimes(sampler=1.0, learner=1.0, straggler=0.1, slowdown=50.0)
    waiting, dropping = clock(3, times), clock(3, times, drop=True, slots=8)
    for update in range(40):
        waiting.take(update)
        dropping.take(update)
    assert waiting.schedule.dropped.total() == 0
    assert dropping.schedule.dropped["in flight"] > 5
    assert dropping.now < waiting.now / 3
    assert waiting.schedule.conserved()
    assert dropping.schedule.conserved()


def test_the_virtual_clock_is_golden_and_survives_being_saved() -> None:
    golden = json.loads(GOLDEN.read_text())
    for case in golden:
        regime = REGIMES.parse(case["regime"])
        schedule = regime.schedule(case["staleness"], SHAPE)
        times, slots = regime.service
        assert isinstance(schedule, AsyncSchedule)
        subject = clock(case["staleness"], times, schedule.drop, slots=slots)
        found = []
        for update in range(len(case["consumed"])):
            found.append(sorted(subject.take(update).times))
            stored = json.loads(json.dumps([subject.schedule.state(), subject.state()]))
            subject = clock(case["staleness"], times, schedule.drop, slots=slots)
            subject.schedule.load(stored[0])
            subject.load(stored[1])
        assert found == case["consumed"]
        assert subject.now == pytest.approx(case["now"], abs=1e-9)
