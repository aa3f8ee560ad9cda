"""`async`: sampler and learner work at the same time, and deliveries decide what an update consumes.

The unit is a ticket: one group (a prompt with its G responses). Ticket n is group n mod P of batch n div P.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take
from vcpo_bench.bench.regimes.regime import Regime, short_number
from vcpo_bench.bench.regimes.service_times import ServiceTimes, TwoStations
from vcpo_bench.naming.parameters import choice, integer

Verdict = Literal["accepted", "duplicate", "late"]
"""What became of a delivered ticket: accepted, delivered before, or no longer wanted."""

NOT_BEGUN = -1


class AsyncSchedule(StalenessSchedule):
    """Lag at most k by admission: (k + version + 1) P minus accepted and running tickets may start (AReaL's gate).

    Tickets are consumed in order, so that nothing is wasted and the learner may wait for a straggler. With `drop`,
    whatever is there is consumed, oldest ticket first, and what would be older than k is dropped.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        drop: Drop what is too old instead of waiting for it.
    """

    planned = False

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, drop: bool = False) -> None:
        super().__init__(staleness, shape, publish_every)
        self.drop = drop
        self.next_ticket = 0
        self.trained = 0
        self.running: dict[int, int] = {}  # ticket -> version it began under
        self.ready: dict[int, int] = {}
        self.lost: list[int] = []  # to be restarted
        self.dropped: Counter[str] = Counter()

    def may_start(self, update: int) -> int:
        """How many tickets may start while theta_update is the newest policy."""
        accepted = self.trained + len(self.ready)
        return (self.staleness + update + 1) * self.shape.prompts - accepted - len(self.running)

    def admit(self, update: int) -> list[Order]:
        """Start as many tickets as may start, lost ones first."""
        tickets = []
        for _ in range(self.may_start(update)):
            if self.lost:
                ticket = self.lost.pop(0)
            else:
                ticket, self.next_ticket = self.next_ticket, self.next_ticket + 1
            self.running[ticket] = NOT_BEGUN
            tickets.append(ticket)
        P, G = self.shape.prompts, self.shape.responses
        return [Order(t // P, tuple(range(t % P * G, (t % P + 1) * G))) for t in tickets]

    def ticket(self, batch: int, group: int) -> int:
        """Number of the ticket of a group."""
        return batch * self.shape.prompts + group

    def begun(self, ticket: int, version: int) -> None:
        """Note that the sampler has begun a ticket under the weights of `version`."""
        if ticket in self.running:
            self.running[ticket] = version

    def accept(self, ticket: int, version: int) -> Verdict:
        """Put a delivered ticket, sampled by the weights of `version`, into the queue."""
        if ticket in self.running:
            del self.running[ticket]
            self.ready[ticket] = version
            return "accepted"
        return "duplicate" if ticket in self.ready else "late"

    def lose(self, ticket: int) -> None:
        """Note that a running ticket will not be delivered, or is not usable: it restarts before any new one."""
        del self.running[ticket]
        self.lost = sorted([*self.lost, ticket])

    def select(self, update: int) -> list[Take]:
        """The P tickets that `update` consumes, which then count as trained; empty until they are in the queue."""
        P = self.shape.prompts
        if self.drop:
            chosen = sorted(self.ready)[:P]
        else:
            chosen = [ticket for ticket in range(update * P, (update + 1) * P) if ticket in self.ready]
        if len(chosen) < P:
            return []
        for ticket in chosen:
            assert update - self.ready.pop(ticket) <= self.staleness + self.publish_every - 1, "older than the bound"
        self.trained += P
        return [Take(ticket // P, (ticket % P,)) for ticket in chosen]

    def evict(self, update: int) -> list[int]:
        """Drop from the queue the tickets that are too old for `update`, and return them."""
        old = self._too_old(self.ready, update)
        for ticket in old:
            del self.ready[ticket]
        self.dropped["in the queue"] += len(old)
        return old

    def abort(self, update: int) -> list[int]:
        """Drop the running tickets that are too old for `update` already, and return them."""
        old = self._too_old(self.running, update)
        for ticket in old:
            del self.running[ticket]
        self.dropped["in flight"] += len(old)
        return old

    def _too_old(self, tickets: dict[int, int], update: int) -> list[int]:
        bound = self.staleness + self.publish_every - 1
        if not self.drop:
            return []
        return [t for t, version in tickets.items() if version != NOT_BEGUN and update - version > bound]

    @property
    def capacity(self) -> int:
        """Batches queued or in flight: k + 1."""
        return self.staleness + 1

    def filling(self, update: int) -> bool:
        """While fewer than k updates are done."""
        return update < self.staleness

    def conserved(self) -> bool:
        """Whether every ticket started is trained, queued, running, to be restarted, or dropped."""
        alive = len(self.ready) + len(self.running) + len(self.lost)
        return self.next_ticket == self.trained + alive + self.dropped.total()

    def state(self) -> dict[str, Any]:
        """The whole schedule, as JSON."""
        return {
            "next_ticket": self.next_ticket,
            "trained": self.trained,
            "ready": sorted(self.ready.items()),
            "running": sorted(self.running.items()),
            "lost": self.lost,
            "dropped": dict(self.dropped),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.next_ticket, self.trained = int(state["next_ticket"]), int(state["trained"])
        self.ready = {int(ticket): int(version) for ticket, version in state["ready"]}
        self.running = {int(ticket): int(version) for ticket, version in state["running"]}
        self.lost = [int(ticket) for ticket in state["lost"]]
        self.dropped = Counter(state["dropped"])


@dataclass(frozen=True, kw_only=True)
class Async(Regime):
    """A sampler process beside the learner, or the same schedule under a virtual clock.

    Attributes:
        overflow: Whether the learner waits for what is late (`wait`) or what is too old is dropped (`drop`).
        clock: `wall`: real processes and real time; `virtual`: one process and seeded service times.
        sampler: Time a group takes at least, in seconds (wall) or units (virtual); 0: no minimum (wall) or 1 (virtual).
        learner: Time an update takes at least; see `sampler`.
        straggler: Probability that a group is a straggler.
        slowdown: Factor by which a straggler or a slow call takes longer.
        spread: Standard deviation of the logarithm of a group's time.
        slots: Groups the sampler works on at once; 0: as many as an update consumes.
        call: Time the task's environment takes for a call, in seconds (wall) or units (virtual).
        slow_calls: Probability that a call takes `slowdown` times as long.
    """

    name: ClassVar[str] = "async"
    summary: ClassVar[str] = "lag at most k: sampler and learner work at the same time, in real or virtual time"

    overflow: str = choice("wait", "drop")
    clock: str = choice("wall", "virtual")
    sampler: float = short_number(0.0)
    learner: float = short_number(0.0)
    straggler: float = short_number(0.0, below=1.0)
    slowdown: float = short_number(10.0, minimum=1.0)
    spread: float = short_number(0.0)
    slots: int = integer(0, minimum=0)
    call: float = short_number(0.0)
    slow_calls: float = short_number(0.0, below=1.0)

    @property
    def deterministic(self) -> bool:
        """Under the virtual clock."""
        return self.clock == "virtual"

    @property
    def needs_process(self) -> bool:
        """Under the real clock."""
        return self.clock == "wall"

    @property
    def service(self) -> TwoStations:
        """See `Regime.service`."""
        least = 1.0 if self.clock == "virtual" else 0.0
        times = ServiceTimes(
            sampler=self.sampler or least,
            learner=self.learner or least,
            straggler=self.straggler,
            slowdown=self.slowdown,
            spread=self.spread,
            call=self.call,
            slow_calls=self.slow_calls,
        )
        return TwoStations(times, self.slots)

    def schedule(self, staleness: int, shape: CellShape) -> AsyncSchedule:
        """See `Regime.schedule`; also at lag 0, where sampler and learner take turns."""
        return self.build(staleness, shape)

    def build(self, staleness: int, shape: CellShape) -> AsyncSchedule:
        """See `Regime.build`."""
        return AsyncSchedule(staleness, shape, self.publish_every, drop=self.overflow == "drop")
