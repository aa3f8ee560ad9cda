"""What each update will consume, as `vcpo-bench lab plan` shows it: without a model, also under a virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.plan import BrokenPromiseError, PlannedUpdate, draw, plan, summary
from vcpo_bench.bench.regimes.regime import REGIMES, Regime
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.virtual_clock import ClockStep, VirtualClock, full_length
from vcpo_bench.errors import UsageError

PROMPTS, RESPONSES, TOKENS = 16, 8, 12
"""Sizes of a cell unless told otherwise."""


def steps(schedule: AsyncSchedule, times: ServiceTimes, slots: int, updates: int) -> Iterator[tuple[ClockStep, float]]:
    """Run a schedule under service times, every response at full length: each update with the time at its end."""
    clock = VirtualClock(schedule, slots, full_length(times, schedule.shape), times.learner)
    for update in range(updates):
        yield clock.take(update), clock.now


def describe(regime: str, staleness: int, updates: int, seed: int) -> str:
    """What `vcpo-bench lab plan` shows: the drawing and one line of numbers, for the default sizes of a cell.

    Raises:
        UsageError: The regime cannot be read, does not fit the lag, or is decided by a real clock.
    """
    planned = planned_updates(regime, staleness, updates, seed)
    found = summary(planned)
    period = f"{found['period']} updates" if found["period"] else "none"
    return f"{draw(planned)}\nlag max {found['max']}, mean {found['mean']:.3g}, period {period}"


def planned_updates(regime: str, staleness: int, updates: int, seed: int) -> list[PlannedUpdate]:
    """What each update will consume, for the default sizes of a cell.

    Raises:
        UsageError: The regime cannot be read, does not fit the lag, is decided by a real clock, or breaks a promise.
    """
    parsed = REGIMES.parse(regime)
    schedule = parsed.schedule(staleness, CellShape(seed, PROMPTS, RESPONSES, TOKENS))
    try:
        if parsed.asynchronous:
            return list(_realized(schedule, parsed, updates))
        return list(plan(schedule, schedule.updates(updates)))
    except BrokenPromiseError as broken:
        raise UsageError(f"--regime {parsed.text()}: {broken}") from None


def _realized(schedule: StalenessSchedule, regime: Regime, updates: int) -> Iterator[PlannedUpdate]:
    if not regime.deterministic:
        raise UsageError(
            f"--regime {regime.text()}: a real clock decides, so there is no plan; "
            "see one with --regime 'async(clock=virtual,sampler=1,learner=1)'"
        )
    assert isinstance(schedule, AsyncSchedule)
    assert regime.service is not None
    times, slots = regime.service
    for update, (step, _) in enumerate(steps(schedule, times, slots or PROMPTS, updates)):
        versions = Counter({v: n * RESPONSES for v, n in Counter(step.versions.values()).items()})
        yield PlannedUpdate(update, versions, versions, schedule.capacity, schedule.filling(update))
