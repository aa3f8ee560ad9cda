"""Real asynchronous training: a sampler process generates while this process learns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.feeding.event_log import EventLog, timed
from vcpo_bench.bench.feeding.sampler_handle import HANG_SECONDS, Delivery, SamplerDown, SamplerHandle, SamplerSetup
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.feeding.source import StepInput, under
from vcpo_bench.bench.feeding.virtual_source import load_groups
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.trajectories import Trajectories, join

MAX_RESTARTS = 3
"""Restarts in a row, without any delivery, after which the cell ends."""
MAX_NONFINITE = 3
"""Deliveries in a row of one ticket with non-finite numbers after which the cell ends."""
LISTEN_SECONDS = 0.05


class SamplerFailed(RuntimeError):  # noqa: N818 - reads as what happened
    """The sampler keeps failing; the message begins with the name of the event."""


class ProcessSource:
    """Serves the learner from a sampler process, under the lag limit of an asynchronous schedule.

    Args:
        schedule: Decides which tickets may start and which groups are used.
        policy: The learner's policy.
        setup: What the sampler process needs to know.
        hang_seconds: Seconds without a heartbeat after which the sampler counts as hung.

    Attributes:
        sampler: The sampler process; None before the first update.
    """

    def __init__(
        self,
        schedule: AsyncSchedule,
        policy: Policy,
        setup: SamplerSetup,
        hang_seconds: float = HANG_SECONDS,
    ) -> None:
        self.schedule, self.policy, self.setup = schedule, policy, setup
        self._hang = hang_seconds
        self.log = EventLog(schedule)
        self.groups: dict[int, Trajectories] = {}  # in the queue
        self._times: dict[int, tuple[float, float]] = {}  # in the queue: started, finished
        self.sampler: SamplerHandle | None = None
        self._weights: SharedWeights | None = None
        self._restarts, self._nonfinite = 0, dict[int, int]()
        self._handed: float | None = None  # when the previous batch was handed over
        self._then = (0.0, 0.0)  # time and the sampler's busy time at the last update

    def next_batch(self, update: int) -> StepInput:
        """Publish the weights of `update`, keep the sampler busy, and wait for the batch of `update`.

        Raises:
            SamplerFailed: The sampler dies, hangs or delivers non-finite numbers repeatedly.
        """
        weights = self._open()
        self._linger()
        if update % self.schedule.publish_every == 0 or self.sampler is None:
            weights.publish(self.policy, update)
        began = time.monotonic()
        takes = self._wait(update)
        now = time.monotonic()
        parts = []
        for ticket in [self.schedule.ticket(take.batch, group) for take in takes for group in take.groups or ()]:
            started, finished = self._times.pop(ticket)
            parts.append(timed(self.groups.pop(ticket), finished - started, now - finished))
        batch = join(update, parts)
        self._listen(update, 0.0)
        self._admit(update)  # the sampler works while this process learns
        facts = self.log.facts(batch, now - began) | {"sampler_busy": self._busy(weights)}
        self._handed = time.monotonic()
        events = self.log.drain()
        return StepInput(batch, self.log.newest, self.schedule.filling(update), 0.0, facts, events)

    def _linger(self) -> None:
        """Sleep until the previous update has taken at least its emulated time."""
        if self._handed is not None:
            time.sleep(max(0.0, self._handed + self.setup.times.learner - time.monotonic()))

    def _open(self) -> SharedWeights:
        if self._weights is None:
            self._weights = SharedWeights.create(sum(p.numel() for p in self.policy.trainable()))
            self._then = (time.monotonic(), 0.0)
        return self._weights

    def _wait(self, update: int) -> list[Any]:
        self._listen(update, 0.0)
        for ticket in self.schedule.evict(update):
            del self._times[ticket]
            self.log.note_ticket(update, "dropped_in_queue", ticket, self.groups.pop(ticket))
        aborted = self.schedule.abort(update)
        for ticket in aborted:
            self.log.note_ticket(update, "dropped_in_flight", ticket)
        if aborted:
            self._talk(update, lambda sampler: sampler.abort(aborted))
        self._admit(update)
        while not (takes := self.schedule.select(update)):
            self._listen(update, LISTEN_SECONDS)
            self._admit(update)
        return takes

    def _admit(self, update: int) -> None:
        """Start the tickets that the schedule admits, and with the first of them the sampler process."""
        orders = self.schedule.admit(update)
        if not orders:
            return
        G = self.schedule.shape.responses
        tickets = [self.schedule.ticket(order.batch, (order.rows or (0,))[0] // G) for order in orders]
        self._talk(update, lambda sampler: sampler.start(tickets))

    def _talk(self, update: int, say: Callable[[SamplerHandle], object]) -> None:
        try:
            if self.sampler is None:
                self.sampler = SamplerHandle(self.setup, self._open(), self._hang)
            say(self.sampler)
        except SamplerDown as down:
            self._restart(update, str(down))

    def _listen(self, update: int, timeout: float) -> None:
        if self.sampler is None:
            return
        try:
            messages = self.sampler.listen(timeout)
        except SamplerDown as down:
            self._restart(update, str(down))
            return
        for message in messages:
            if isinstance(message, Delivery):
                self.receive(update, message)
            else:
                for ticket in message[1]:
                    self.schedule.begun(ticket, message[2])

    def receive(self, update: int, result: Delivery) -> None:
        """Queue a delivered group, or record why it is not used.

        Raises:
            SamplerFailed: It has non-finite numbers for the third time in a row.
        """
        tensors = {name: torch.from_numpy(array) for name, array in result.arrays.items()}
        group = Trajectories(result.ticket // self.schedule.shape.prompts, **tensors)
        if result.ticket in self.schedule.running and not _finite(group):
            self._reject(update, result.ticket, group)
            return
        verdict = self.schedule.accept(result.ticket, result.version)
        if verdict != "accepted":
            self.log.note_ticket(update, verdict, result.ticket, group)
            return
        self._restarts = 0
        self._nonfinite.pop(result.ticket, None)
        self.groups[result.ticket], self._times[result.ticket] = group, (result.started, result.finished)
        self.log.delivered(group)

    def _reject(self, update: int, ticket: int, group: Trajectories) -> None:
        self.log.note_ticket(update, "nonfinite", ticket, group)
        self._nonfinite[ticket] = self._nonfinite.get(ticket, 0) + 1
        if self._nonfinite[ticket] >= MAX_NONFINITE:
            raise SamplerFailed(
                f"sampler_nonfinite: ticket {ticket} had non-finite numbers {MAX_NONFINITE} times in a row"
            )
        self.schedule.lose(ticket)

    def _restart(self, update: int, event: str) -> None:
        """Kill the sampler; the next order starts another one, and the running tickets start again."""
        if self.sampler:
            self.sampler.close()
            self.sampler = None
        self._restarts += 1
        self.log.note(update, event, f"{len(self.schedule.running)} groups start again")
        if self._restarts > MAX_RESTARTS:
            raise SamplerFailed(f"{event}: {self._restarts} samplers in a row delivered nothing")
        for ticket in list(self.schedule.running):
            self.schedule.lose(ticket)

    def _busy(self, weights: SharedWeights) -> float:
        """Share of its slots' time that the sampler was busy since the last update."""
        (then, worked), now, busy = self._then, time.monotonic(), weights.busy
        self._then = (now, busy)
        return min(max(busy - worked, 0.0) / max(now - then, 1e-9), 1.0)

    def tensors(self) -> dict[str, Tensor]:
        """The queue; after a resume, groups in flight start again."""
        return {f"group/{t}/{name}": x for t, group in self.groups.items() for name, x in group.tensors().items()}

    def state(self) -> dict[str, Any]:
        """The schedule and the newest rewards."""
        return {"schedule": self.schedule.state(), "ledger": self.log.state()}

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Load what `tensors` and `state` returned before `update`; time in the queue counts from now."""
        self.schedule.load(state["schedule"])
        for ticket in list(self.schedule.running):
            self.schedule.lose(ticket)
        self.log.load(state["ledger"])
        self.groups = load_groups(under(tensors, "group/"), self.schedule.shape.prompts)
        self._times = dict.fromkeys(self.groups, (time.monotonic(), time.monotonic()))

    def close(self) -> None:
        """End the sampler process and release the shared memory."""
        if self.sampler:
            self.sampler.close()
            self.sampler = None
        if self._weights:
            self._weights.close()
            self._weights = None


def _finite(group: Trajectories) -> bool:
    return bool(torch.isfinite(group.behavior_logp[group.mask]).all() and torch.isfinite(group.reward).all())
