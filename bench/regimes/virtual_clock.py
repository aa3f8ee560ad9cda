"""Asynchronous training under a virtual clock: seeded service times in place of processes, the same schedule."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, Take
from vcpo_bench.bench.regimes.plan import promise
from vcpo_bench.bench.regimes.service_times import ServiceTimes

Begin = Callable[[Sequence[int], int], Sequence[float]]
"""Starts tickets under the weights of a version, and returns their service times."""


def full_length(times: ServiceTimes, shape: CellShape) -> Begin:
    """Starts tickets whose responses all reach full length, without sampling them."""
    return lambda tickets, _: [times.group(shape, ticket, shape.tokens) for ticket in tickets]


@dataclass(slots=True)
class ClockStep:
    """What happened around one update.

    Attributes:
        takes: What it consumes.
        evicted: Tickets dropped from the queue.
        aborted: Tickets dropped in flight.
        delivered: Tickets that entered the queue since the update before began.
        times: Time in flight and in the queue of every ticket consumed.
        versions: Version of the weights that sampled it.
        busy: Share of the sampler's slots in use, from the end of the last update to the end of this one.
    """

    takes: list[Take]
    evicted: list[int]
    aborted: list[int]
    delivered: list[int]
    times: dict[int, tuple[float, float]]
    versions: dict[int, int]
    busy: float


class VirtualClock:
    """Runs an asynchronous schedule: completions, starts and updates in the order of a virtual time.

    Args:
        schedule: What decides which tickets start and which are consumed.
        slots: Groups the sampler works on at once.
        begin: Starts tickets.
        learner: Time of an update.

    Attributes:
        now: Virtual time.
        busy: Time the sampler's slots have worked, added up over slots.
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
        """Advance time until `update` can begin, then to its end; whatever starts has the weights before it."""
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
        """Go to the next completion; those at the same instant are one event, and their slots become free."""
        promise(bool(self.due), f"update {update} waits for groups, and none is in flight")
        self._advance(self._next())
        for ticket in sorted(ticket for ticket, (end, _, _) in self.due.items() if end <= self.now):
            end, start, version = self.due.pop(ticket)
            self.schedule.accept(ticket, version)
            self.finished[ticket] = (end, start, version)
            self._delivered.append(ticket)
        self._start(update)

    def state(self) -> dict[str, Any]:
        """The whole clock, as JSON."""
        return {
            "numbers": [self.now, self.busy, self.waited],
            "pending": list(self.pending),
            "delivered": self._delivered,
            "due": sorted((t, *times) for t, times in self.due.items()),
            "finished": sorted((t, *times) for t, times in self.finished.items()),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.now, self.busy, self.waited = map(float, state["numbers"])
        self.pending, self._delivered = deque(state["pending"]), list(state["delivered"])
        self.due = {t: (end, start, version) for t, end, start, version in state["due"]}
        self.finished = {t: (end, start, version) for t, end, start, version in state["finished"]}
