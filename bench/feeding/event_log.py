"""Bookkeeping of asynchronous runs: events for `events.parquet`, columns for `steps.parquet`, the newest reward."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.trajectories import Trajectories


class EventLog:
    """What happened to the tickets of one asynchronous run."""

    def __init__(self, schedule: AsyncSchedule) -> None:
        self.schedule = schedule
        self._recent: deque[list[float]] = deque(maxlen=schedule.shape.prompts)
        self._events: list[dict[str, Any]] = []
        self._dropped = 0

    def delivered(self, group: Trajectories) -> None:
        """Record that a group entered the queue."""
        self._recent.append(group.reward.flatten().tolist())

    @property
    def newest(self) -> float:
        """Mean reward of the last P delivered groups."""
        return float(torch.tensor([r for rewards in self._recent for r in rewards], dtype=torch.float64).mean())

    def note(self, update: int, event: str, detail: str = "") -> None:
        """Record an event before `update` that concerns no single group."""
        self._events.append({"step": update, "event": event, "detail": detail})

    def note_ticket(self, update: int, event: str, ticket: int, group: Trajectories | None = None) -> None:
        """Record an event of a ticket before `update`, with lag, length and reward where the group is known."""
        batch, index = divmod(ticket, self.schedule.shape.prompts)
        row: dict[str, Any] = {"step": update, "event": event, "batch": batch, "group": index}
        if group is not None:
            row["lag"] = update - int(group.version.max())
            row["length"] = float(group.mask.sum(-1).double().mean())
            row["reward"] = float(group.reward.mean())
        self._events.append(row)
        self._dropped += event.startswith("dropped")

    def facts(self, batch: Trajectories, waited: float) -> dict[str, Any]:
        """Columns of `records.steps.STEPS` for the update that consumes `batch`."""
        assert batch.seconds is not None
        flight, queue = batch.seconds.mean((0, 1)).tolist()
        dropped, self._dropped = self._dropped, 0
        return {
            "seconds_wait": waited,
            "seconds_in_flight": flight,
            "seconds_in_queue": queue,
            "queued": len(self.schedule.ready),
            "in_flight": len(self.schedule.running),
            "dropped": dropped,
        }

    def drain(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def state(self) -> list[list[float]]:
        """The newest rewards, as JSON."""
        return list(self._recent)

    def load(self, state: list[list[float]]) -> None:
        """Load what `state` returned."""
        self._recent.clear()
        self._recent.extend(state)


def timed(group: Trajectories, flight: float, queue: float) -> Trajectories:
    """A group with the seconds it spent in flight and in the queue."""
    seconds = torch.tensor([flight, queue], dtype=torch.float64).expand(1, group.mask.shape[1], 2)
    return Trajectories(group.index, **(group.tensors() | {"seconds": seconds}))
