"""Checks of what every regime promises, without a model: for the tests of a regime, built in or your own."""

from __future__ import annotations

import json
from dataclasses import replace

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.plan import plan, promise
from vcpo_bench.bench.regimes.regime import Regime
from vcpo_bench.bench.regimes.service_times import TwoStations
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock, full_length

SMALL = CellShape(seed=0, prompts=4, responses=2, tokens=12)


def check_regime(regime: Regime, staleness: int, shape: CellShape = SMALL, updates: int = 40) -> None:
    """Check that a regime keeps its promises at one lag.

    Every update is full, its lag is at most k (plus what `publish_every` adds), what it consumes was admitted, and what
    was evicted is not used later. The answers of a planned schedule depend on the update alone, so that a cell can be
    resumed at any of them; an asynchronous one is the same after it was saved and loaded.

    Args:
        regime: The regime with its options.
        staleness: Largest lag k, in optimizer updates.
        shape: Sizes and seed of a cell.
        updates: Updates to run.

    Raises:
        AssertionError: A promise is broken; the message says which and where.
        UsageError: The options do not fit the lag or the sizes.
    """
    schedule = regime.schedule(staleness, shape)
    promise(schedule.updates(updates) >= updates, f"only {schedule.updates(updates)} updates of a budget of {updates}")
    if regime.service is not None:
        promise(isinstance(schedule, AsyncSchedule), f"{regime.name} is asynchronous: it must build an AsyncSchedule")
        _check_deliveries(regime, regime.service, staleness, shape, updates)
        return
    promise(schedule.planned, f"{regime.name} has no service times, so its schedule must be a planned one")
    for _ in plan(schedule, updates):
        pass
    again = regime.schedule(staleness, shape)
    backward = [_answers(again, update) for update in reversed(range(updates))]
    forward = [_answers(schedule, update) for update in range(updates)]
    for update, (first, second) in enumerate(zip(forward, reversed(backward), strict=True)):
        promise(first == second, f"update {update}: the answers depend on what was asked before")


def _answers(schedule: StalenessSchedule, update: int) -> tuple[object, ...]:
    asked = (schedule.admit, schedule.select, schedule.evict, schedule.proximal, schedule.version, schedule.filling)
    return tuple(question(update) for question in asked)


def _check_deliveries(regime: Regime, service: TwoStations, staleness: int, shape: CellShape, updates: int) -> None:
    """Run an asynchronous schedule under a virtual clock, saving and loading it before every update."""
    times = replace(service.times, sampler=service.times.sampler or 1.0, learner=service.times.learner or 1.0)
    done: set[int] = set()
    state: tuple[object, object] | None = None
    for update in range(updates):
        schedule = regime.schedule(staleness, shape)
        assert isinstance(schedule, AsyncSchedule)
        clock = VirtualClock(schedule, service.slots or shape.prompts, full_length(times, shape), times.learner)
        if state is not None:
            saved = json.loads(json.dumps(state))
            schedule.load(saved[0])
            clock.load(saved[1])
        step = clock.take(update)
        consumed = set(step.versions)
        promise(len(consumed) == shape.prompts, f"update {update} is not full: {len(consumed)} groups")
        promise(not consumed & done, f"update {update} consumes tickets that were consumed or dropped before")
        done |= consumed | {*step.evicted, *step.aborted}
        bound, lag = staleness + schedule.publish_every - 1, update - min(step.versions.values())
        promise(lag <= bound, f"update {update} has lag {lag}, above the bound {bound}")
        queued = len(schedule.ready) + len(schedule.running)
        promise(queued <= schedule.capacity * shape.prompts, f"update {update}: {queued} groups, above the capacity")
        promise(schedule.conserved(), f"update {update}: a ticket is neither trained, queued, running nor dropped")
        state = (schedule.state(), clock.state())
