"""Asynchronous training under a clock of its own: seeded service times instead of processes, the same gate."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import Take
from vcpo_bench.bench.streams import uniforms


@dataclass(frozen=True)
class ServiceTimes:
    """How long a group and an update take.

    Attributes:
        sampler: Time of a group whose longest response has T tokens; shorter ones take their share.
        learner: Time of an update.
        straggler: Probability that a group is a straggler, drawn from a seeded stream.
        slowdown: What a straggler's time is multiplied with.
        spread: Standard deviation of the logarithm of a group's time; the mean stays.
    """

    sampler: float
    learner: float
    straggler: float = 0.0
    slowdown: float = 10.0
    spread: float = 0.0

    def group(self, schedule: AsyncSchedule, ticket: int, length: int) -> float:
        """Time of one group whose longest response has `length` tokens."""
        shape, factor = schedule.shape, 1.0
        batch, group = divmod(ticket, shape.prompts)
        if self.straggler and uniforms(shape.seed, "straggler", batch, group + 1, 1)[group, 0] < self.straggler:
            factor = self.slowdown
        if self.spread:
            draw = uniforms(shape.seed, "service", batch, group + 1, 1)[group, 0]
            normal = NormalDist().inv_cdf(max(draw, 2.0**-54))
            factor *= math.exp(self.spread * normal - self.spread**2 / 2)
        return self.sampler * factor * length / shape.tokens


Begin = Callable[[Sequence[int], int], Sequence[float]]
"""Starts tickets under the weights of a version; their service times."""


@dataclass(slots=True)
class ClockStep:
    """What happened around one update.

    Attributes:
        takes: What it consumes.
        evicted: Tickets dropped from the queue.
        aborted: Tickets dropped in flight.
        delivered: Tickets that came into the queue before the update began.
        times: Time in flight and in the queue of every ticket consumed.
        versions: Version of the weights that sampled it.
        busy: Share of the sampler's slots that worked, from the end of the last update to the end of this.
    """

    takes: list[Take]
    evicted: list[int]
    aborted: list[int]
    delivered: list[int]
    times: dict[int, tuple[float, float]]
    versions: dict[int, int]
    busy: float


class VirtualClock:
    """Runs the gate against service times: completions, starts and updates in the order of a virtual time.

    Args:
        schedule: The gate.
        slots: Groups the sampler works on at once.
        begin: Starts tickets.
        learner: Time of an update.

    Attributes:
        now: Virtual time.
        busy: Slot-time the sampler has worked.
        waited: Time the learner has waited.
    """

    def __init__(self, schedule: AsyncSchedule, slots: int, begin: Begin, learner: float) -> None:
        self.schedule, self.slots, self.begin, self.learner = schedule, slots, begin, learner
        self.now = self.busy = self.waited = 0.0
        self.pending: deque[int] = deque()
        self.due: dict[int, tuple[float, float, int]] = {}  # running ticket -> end, start, version
        self.finished: dict[int, tuple[float, float, int]] = {}  # ticket in the queue -> end, start, version
        self._delivered: list[int] = []

    def take(self, update: int) -> ClockStep:
        """Let time pass until `update` can begin, then to its end, all under the weights before it."""
        began, busy = self.now, self.busy
        evicted, aborted = self.schedule.evict(update), self.schedule.abort(update)
        for ticket in evicted:
            del self.finished[ticket]
        for ticket in aborted:
            del self.due[ticket]
        self._start(update)
        while not (takes := self.schedule.select(update)):
            self._complete_next(update)
        self.waited += self.now - began
        delivered, self._delivered = self._delivered, []
        times, versions = {}, {}
        for ticket in [self.schedule.ticket(take.batch, group) for take in takes for group in take.groups or ()]:
            end, start, versions[ticket] = self.finished.pop(ticket)
            times[ticket] = (end - start, self.now - end)
        until = self.now + self.learner
        while self.due and self._next() <= until:
            self._complete_next(update)
        self._advance(until)
        worked = (self.busy - busy) / (self.slots * (self.now - began))
        return ClockStep(takes, evicted, aborted, delivered, times, versions, worked)

    def _start(self, update: int) -> None:
        G = self.schedule.shape.responses
        for order in self.schedule.admit(update):
            assert order.rows is not None
            self.pending.append(self.schedule.ticket(order.batch, order.rows[0] // G))
        free = min(self.slots - len(self.due), len(self.pending))
        tickets = [self.pending.popleft() for _ in range(free)]
        version = self.schedule.version(update)
        for ticket, duration in zip(tickets, self.begin(tickets, version) if tickets else (), strict=True):
            self.schedule.begun(ticket, version)
            self.due[ticket] = (self.now + duration, self.now, version)

    def _next(self) -> float:
        return min(end for end, _, _ in self.due.values())

    def _advance(self, until: float) -> None:
        self.busy += len(self.due) * (until - self.now)
        self.now = until

    def _complete_next(self, update: int) -> None:
        """Go to the next completion; those at the same instant are one event, and their slots are free."""
        self._advance(self._next())
        for ticket in sorted(ticket for ticket, (end, _, _) in self.due.items() if end <= self.now):
            end, start, version = self.due.pop(ticket)
            self.schedule.accept(ticket, version)
            self.finished[ticket] = (end, start, version)
            self._delivered.append(ticket)
        self._start(update)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "numbers": [self.now, self.busy, self.waited],
            "pending": list(self.pending),
            "delivered": self._delivered,
            "due": sorted((t, *times) for t, times in self.due.items()),
            "finished": sorted((t, *times) for t, times in self.finished.items()),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.now, self.busy, self.waited = map(float, state["numbers"])
        self.pending, self._delivered = deque(state["pending"]), list(state["delivered"])
        self.due = {t: (end, start, version) for t, end, start, version in state["due"]}
        self.finished = {t: (end, start, version) for t, end, start, version in state["finished"]}
