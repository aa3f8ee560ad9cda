"""Asynchronous training in one process, reproducibly: real weights and samples under seeded service times."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from torch import Tensor

from vcpo_bench.bench.feeding.event_log import EventLog, timed
from vcpo_bench.bench.feeding.source import StepInput, under
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler, service_time
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.virtual_clock import VirtualClock
from vcpo_bench.bench.trajectories import Trajectories, join


class VirtualSource:
    """Serves the learner as an asynchronous schedule and a virtual clock decide.

    Args:
        schedule: Decides which tickets may start and which groups are used.
        sampler: Samples the tickets that the clock starts.
        slots: Groups the sampler works on at once.
        times: Service times, in units of the virtual clock.
    """

    def __init__(self, schedule: AsyncSchedule, sampler: TicketSampler, slots: int, times: ServiceTimes) -> None:
        self.schedule, self.sampler, self.service = schedule, sampler, times
        self.clock = VirtualClock(schedule, slots, self._begin, times.learner)
        self.log = EventLog(schedule)
        self.groups: dict[int, Trajectories] = {}  # started and not consumed yet
        self._sampling = 0.0

    def _begin(self, tickets: Sequence[int], version: int) -> list[float]:
        began = perf_counter()
        fresh = self.sampler.run(tickets, version)
        self.groups |= fresh
        self._sampling += perf_counter() - began
        return [service_time(self.service, self.schedule.shape, t, fresh[t]) for t in tickets]

    def next_batch(self, update: int) -> StepInput:
        """Advance virtual time until the batch of `update` is complete, then until the update would be done."""
        self.sampler.published.publish(update)
        self._sampling, waited = 0.0, self.clock.waited
        step = self.clock.take(update)
        for ticket in step.delivered:
            self.log.delivered(self.groups[ticket])
        for event, tickets in (("dropped_in_queue", step.evicted), ("dropped_in_flight", step.aborted)):
            for ticket in tickets:
                self.log.note_ticket(update, event, ticket, self.groups.pop(ticket))
        tickets = [self.schedule.ticket(take.batch, group) for take in step.takes for group in take.groups or ()]
        batch = join(update, [timed(self.groups.pop(ticket), *step.times[ticket]) for ticket in tickets])
        facts = self.log.facts(batch, self.clock.waited - waited) | {"sampler_busy": step.busy}
        events = self.log.drain()
        return StepInput(batch, self.log.newest, self.schedule.filling(update), self._sampling, facts, events)

    def tensors(self) -> dict[str, Tensor]:
        """All groups started and not consumed yet, and the published weights."""
        tensors = {f"group/{t}/{name}": x for t, group in self.groups.items() for name, x in group.tensors().items()}
        return tensors | {f"engine/{name}": x for name, x in self.sampler.published.tensors().items()}

    def state(self) -> dict[str, Any]:
        """The schedule, the clock and the newest rewards."""
        return {"schedule": self.schedule.state(), "clock": self.clock.state(), "ledger": self.log.state()}

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Load what `tensors` and `state` returned before `update`."""
        self.schedule.load(state["schedule"])
        self.clock.load(state["clock"])
        self.log.load(state["ledger"])
        self.sampler.published.load(under(tensors, "engine/"))
        self.groups = load_groups(under(tensors, "group/"), self.schedule.shape.prompts)

    def close(self) -> None:
        """Release the sampler."""
        self.sampler.published.close()


def load_groups(tensors: dict[str, Tensor], prompts: int) -> dict[int, Trajectories]:
    """Groups by ticket from the tensors of a checkpoint."""
    tickets = sorted({int(name.split("/")[0]) for name in tensors})
    return {t: Trajectories(t // prompts, **under(tensors, f"{t}/")) for t in tickets}
