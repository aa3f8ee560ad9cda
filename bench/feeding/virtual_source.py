"""The deterministic replay of asynchronous training: real weights and samples, seeded service times, one process."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from torch import Tensor

from vcpo_bench.bench.feeding.event_log import Ledger, timed
from vcpo_bench.bench.feeding.source import Feed, under
from vcpo_bench.bench.feeding.ticket_sampler import GroupSampler
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock
from vcpo_bench.bench.trajectories import Trajectories, join


class VirtualSource:
    """Feeds the learner as the gate and a virtual clock decide.

    Args:
        schedule: The gate.
        sampler: Samples what the clock starts.
        slots: Groups the sampler works on at once.
        times: Service times, in units of the virtual clock.
    """

    def __init__(self, schedule: AsyncSchedule, sampler: GroupSampler, slots: int, times: ServiceTimes) -> None:
        self.schedule, self.sampler, self.service = schedule, sampler, times
        self.clock = VirtualClock(schedule, slots, self._begin, times.learner)
        self.ledger = Ledger(schedule)
        self.groups: dict[int, Trajectories] = {}  # begun and not trained on
        self._sampling = 0.0

    def _begin(self, tickets: Sequence[int], version: int) -> list[float]:
        began = perf_counter()
        fresh = self.sampler.run(tickets, version)
        self.groups |= fresh
        self._sampling += perf_counter() - began
        return [self.service.group(self.schedule.shape, t, int(fresh[t].mask.sum(-1).max())) for t in tickets]

    def feed(self, update: int) -> Feed:
        """Let virtual time pass until the batch of `update` is there, then until the update would be done."""
        self.sampler.engine.publish(update)
        self._sampling, waited = 0.0, self.clock.waited
        step = self.clock.take(update)
        for ticket in step.delivered:
            self.ledger.delivered(self.groups[ticket])
        for event, tickets in (("dropped_in_queue", step.evicted), ("dropped_in_flight", step.aborted)):
            for ticket in tickets:
                self.ledger.concerns(update, event, ticket, self.groups.pop(ticket))
        tickets = [self.schedule.ticket(take.batch, group) for take in step.takes for group in take.groups or ()]
        batch = join(update, [timed(self.groups.pop(ticket), *step.times[ticket]) for ticket in tickets])
        facts = self.ledger.facts(batch, self.clock.waited - waited) | {"sampler_busy": step.busy}
        events = self.ledger.hand_over()
        return Feed(batch, self.ledger.newest, self.schedule.filling(update), self._sampling, facts, events)

    def tensors(self) -> dict[str, Tensor]:
        """Everything begun and not trained on, and the engine's weights."""
        found = {f"group/{t}/{name}": x for t, group in self.groups.items() for name, x in group.tensors().items()}
        return found | {f"engine/{name}": x for name, x in self.sampler.engine.tensors().items()}

    def state(self) -> dict[str, Any]:
        """The gate, the clock and the newest rewards."""
        return {"schedule": self.schedule.state(), "clock": self.clock.state(), "ledger": self.ledger.state()}

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take up what `tensors` and `state` gave before `update`."""
        self.schedule.load(state["schedule"])
        self.clock.load(state["clock"])
        self.ledger.load(state["ledger"])
        self.sampler.engine.load(under(tensors, "engine/"))
        self.groups = load_groups(under(tensors, "group/"), self.schedule.shape.prompts)

    def close(self) -> None:
        """Let go of the sampler."""
        self.sampler.engine.close()


def load_groups(tensors: dict[str, Tensor], prompts: int) -> dict[int, Trajectories]:
    """Groups by ticket from the tensors of a checkpoint."""
    tickets = sorted({int(name.split("/")[0]) for name in tensors})
    return {t: Trajectories(t // prompts, **under(tensors, f"{t}/")) for t in tickets}
