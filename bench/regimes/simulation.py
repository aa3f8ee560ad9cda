"""Simulation of asynchronous training from service times: realized lag and speed, without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.plan import PlannedUpdate, draw, plan, summary
from vcpo_bench.bench.regimes.regime import REGIMES, Regime
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.virtual_clock import ClockStep, VirtualClock, full_length
from vcpo_bench.errors import UsageError

PROMPTS, RESPONSES, TOKENS = 16, 8, 12
"""Sizes of a cell unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed and lag of a simulated run after its pipeline has filled.

    Attributes:
        updates_per_second: Updates per unit of time.
        mean_lag: Mean lag of the consumed trajectories.
        max_lag: Largest lag of a consumed trajectory.
        sampler_busy: Share of the sampler's slots in use, from 0 to 1.
        learner_busy: Share of the time in which an update ran, from 0 to 1.
        dropped: Share of the groups that were dropped, from 0 to 1.
    """

    updates_per_second: float
    mean_lag: float
    max_lag: int
    sampler_busy: float
    learner_busy: float
    dropped: float


def steps(schedule: AsyncSchedule, times: ServiceTimes, slots: int, updates: int) -> Iterator[tuple[ClockStep, float]]:
    """Run a schedule under service times, every response at full length: each update with the time at its end."""
    clock = VirtualClock(schedule, slots, full_length(times, schedule.shape), times.learner)
    for update in range(updates):
        yield clock.take(update), clock.now


def simulate(schedule: AsyncSchedule, times: ServiceTimes, slots: int, updates: int) -> Speed:
    """Speed and lag of asynchronous training, from update k + 1 on."""
    done = list(steps(schedule, times, slots, updates))
    fill = min(schedule.staleness, updates - 2)
    steady, span = done[fill + 1 :], done[-1][1] - done[fill][1]
    lags = [t - v for t, (step, _) in enumerate(done) if t > fill for v in step.versions.values()]
    lost = schedule.dropped.total()
    return Speed(
        updates_per_second=len(steady) / span,
        mean_lag=sum(lags) / len(lags),
        max_lag=max(lags),
        sampler_busy=sum(step.busy * (end - done[fill + i][1]) for i, (step, end) in enumerate(steady)) / span,
        learner_busy=times.learner * len(steady) / span,
        dropped=lost / (lost + schedule.trained),
    )


def synchronous(shape: CellShape, times: ServiceTimes, slots: int, updates: int) -> Speed:
    """The split synchronous baseline: sampler and learner take turns on their own devices."""
    return simulate(AsyncSchedule(0, shape), times, slots, updates)


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
        UsageError: The regime cannot be read, does not fit the lag, or is decided by a real clock.
    """
    parsed = REGIMES.parse(regime)
    schedule = parsed.schedule(staleness, CellShape(seed, PROMPTS, RESPONSES, TOKENS))
    if parsed.asynchronous:
        return list(_realized(schedule, parsed, updates))
    return list(plan(schedule, schedule.updates(updates)))


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


def describe_speed(regime: str, staleness: int, updates: int, seed: int) -> str:
    """What `vcpo-bench lab plan --simulate` shows: asynchronous against split synchronous under the same service times.

    Raises:
        UsageError: The regime has no service times, or there are too few updates.
    """
    parsed = REGIMES.parse(regime)
    if parsed.service is None:
        raise UsageError(f"--simulate needs service times: --regime 'async(sampler=2,learner=1)', not {regime}")
    if updates < 3:
        raise UsageError(f"--steps {updates}: a speed needs at least 3 updates")
    times, slots = parsed.service.times, parsed.service.slots or PROMPTS
    if not (times.sampler and times.learner):
        raise UsageError(f"--regime {regime}: say how long things take, as in async(sampler=2,learner=1)")
    shape = CellShape(seed, PROMPTS, RESPONSES, TOKENS)
    schedule = parsed.schedule(staleness, shape)
    assert isinstance(schedule, AsyncSchedule)
    found, baseline = simulate(schedule, times, slots, updates), synchronous(shape, times, slots, updates)
    columns = ("", "updates per unit", "mean lag", "max lag", "sampler busy", "learner busy", "dropped")
    lines = ["{:<17} {:>17} {:>9} {:>8} {:>13} {:>13} {:>8}".format(*columns)]
    for name, speed in (("split synchronous", baseline), (f"{parsed.name}, k = {staleness}", found)):
        lines.append(
            f"{name:<17} {speed.updates_per_second:17.4g} {speed.mean_lag:9.2f} {speed.max_lag:8} "
            f"{speed.sampler_busy:13.0%} {speed.learner_busy:13.0%} {speed.dropped:8.1%}"
        )
    gain = found.updates_per_second / baseline.updates_per_second
    return "\n".join([*lines, f"{gain:.2f} times the updates of split synchronous training"])
