"""Asynchronous training as a schedule: who may start, what is consumed, what is too old. Events decide, not a plan.

The unit is a ticket: one group (a prompt with its G responses). Ticket n is group n mod P of batch n div P.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from vcpo_bench.bench.regimes.base import CellShape, Order, StalenessSchedule, Take

Verdict = Literal["accepted", "duplicate", "late"]
"""What became of a delivered ticket: taken, delivered before, or no longer wanted."""

NOT_BEGUN = -1


class AsyncSchedule(StalenessSchedule):
    """Lag at most k by admission: (k + version + 1) P minus accepted and running tickets may start (AReaL's gate).

    `wait` consumes tickets in order, so nothing is lost and the learner may wait for a straggler. `drop` consumes
    whatever is there, oldest ticket first, and gives up what would be older than k.

    Args:
        staleness: Largest lag k.
        shape: Sizes and seed of the cell.
        publish_every: See the base class.
        drop: The second policy instead of the first.
    """

    deterministic = False

    def __init__(self, staleness: int, shape: CellShape, publish_every: int = 1, drop: bool = False) -> None:
        super().__init__(staleness, shape, publish_every)
        self.drop = drop
        self.next_ticket = 0
        self.trained = 0
        self.running: dict[int, int] = {}  # ticket -> version it began under
        self.ready: dict[int, int] = {}
        self.lost: list[int] = []  # to be started again
        self.dropped: Counter[str] = Counter()

    def may_start(self, update: int) -> int:
        """Tickets the gate lets start while theta_update is the newest policy."""
        accepted = self.trained + len(self.ready)
        return (self.staleness + update + 1) * self.shape.prompts - accepted - len(self.running)

    def admit(self, update: int) -> list[Order]:
        """Start as many tickets as the gate allows, those that were lost first."""
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
        """The sampler has begun a ticket under weights of `version`."""
        if ticket in self.running:
            self.running[ticket] = version

    def accept(self, ticket: int, version: int) -> Verdict:
        """Take a delivered ticket, sampled by weights of `version`, into the queue."""
        if ticket in self.running:
            del self.running[ticket]
            self.ready[ticket] = version
            return "accepted"
        return "duplicate" if ticket in self.ready else "late"

    def lose(self, ticket: int) -> None:
        """A running ticket will not be delivered, or not usably: it starts again before any new one."""
        del self.running[ticket]
        self.lost = sorted([*self.lost, ticket])

    def select(self, update: int) -> list[Take]:
        """The P tickets this update consumes, or nothing while they are not there. They count as trained from now."""
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
        """Tickets of the queue that are too old for `update` and are dropped."""
        old = self._too_old(self.ready, update)
        for ticket in old:
            del self.ready[ticket]
        self.dropped["in the queue"] += len(old)
        return old

    def abort(self, update: int) -> list[int]:
        """Running tickets that are too old for `update` already and are given up."""
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
        """Whether every ticket started is trained, queued, running, to be started again, or dropped with a reason."""
        alive = len(self.ready) + len(self.running) + len(self.lost)
        return self.next_ticket == self.trained + alive + self.dropped.total()

    def state(self) -> dict[str, Any]:
        """All of it; what was running is to be started again."""
        return {
            "next_ticket": self.next_ticket,
            "trained": self.trained,
            "ready": sorted(self.ready.items()),
            "running": sorted(self.running.items()),
            "lost": self.lost,
            "dropped": dict(self.dropped),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.next_ticket, self.trained = int(state["next_ticket"]), int(state["trained"])
        self.ready = {int(ticket): int(version) for ticket, version in state["ready"]}
        self.running = {int(ticket): int(version) for ticket, version in state["running"]}
        self.lost = [int(ticket) for ticket in state["lost"]]
        self.dropped = Counter(state["dropped"])
