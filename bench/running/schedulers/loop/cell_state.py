"""Where a cell stands with its scheduler, and what to do about it next: no files, no clock, no scheduler here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path

from vcpo_bench.bench.running.cell_job import MAX_DEATHS
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult


class Phase(Enum):
    """How far a cell is that has not ended."""

    WAITING = auto()
    """It is to be submitted."""
    HELD = auto()
    """It is to be submitted once the cell whose step scales it uses has ended."""
    SUBMITTED = auto()
    """Its job waits or runs."""
    MISSED = auto()
    """Its job is gone, and its end may still show."""
    LOST = auto()
    """Its jobs died too often: it is recorded as failed as soon as nobody else may have it."""
    LEFT = auto()
    """Nothing more is done about it here: the same command, given again, runs it."""


class Action(Enum):
    """What to do about a cell."""

    WAIT = auto()
    """Nothing."""
    SUBMIT = auto()
    """Submit it."""
    MISS = auto()
    """Give its end time to show, since its job is gone."""
    FIND = auto()
    """Go on as before, since its job is there after all."""
    RESUBMIT = auto()
    """Count its job, and submit it again."""
    LOSE = auto()
    """Count its job, and record the cell as failed."""
    LEAVE = auto()
    """Say why, and do nothing more."""


_NEXT = {
    Action.SUBMIT: Phase.WAITING,
    Action.MISS: Phase.MISSED,
    Action.FIND: Phase.SUBMITTED,
    Action.RESUBMIT: Phase.WAITING,
    Action.LOSE: Phase.LOST,
    Action.LEAVE: Phase.LEFT,
}


@dataclass(frozen=True, slots=True)
class CellState:
    """Where a cell stands.

    Attributes:
        phase: How far it is.
        handle: The job that was last submitted for it; empty: none.
        missed: When that job was found to be gone, in seconds of the monotonic clock.
        deaths: Jobs that have died since the cell last ended.
        completions: Jobs that completed while the end of the cell did not show.
    """

    phase: Phase = Phase.WAITING
    handle: str = ""
    missed: float = 0.0
    deaths: int = 0
    completions: int = 0

    @property
    def has_job(self) -> bool:
        """Whether a job is to be asked about."""
        return self.phase in (Phase.SUBMITTED, Phase.MISSED)

    def submitted(self, handle: str) -> CellState:
        """The state once a job has the cell."""
        return replace(self, phase=Phase.SUBMITTED, handle=handle)

    def held(self) -> CellState:
        """The state once it is known that the cell must wait for another."""
        return replace(self, phase=Phase.HELD)

    def after(self, action: Action, result: JobResult | None, now: float) -> CellState:
        """The state after an action.

        Args:
            action: The action.
            result: What it was decided on.
            now: Seconds of the monotonic clock.
        """
        if action is Action.WAIT:
            return self
        counts = result is not None and not result.canceled and not result.preempted
        completed = result is not None and result.completed
        return replace(
            self,
            phase=_NEXT[action],
            missed=now if action is Action.MISS else self.missed,
            deaths=self.deaths + (counts and not completed),
            completions=self.completions + (counts and completed),
        )


def next_action(state: CellState, alive: bool, result: JobResult | None) -> Action:
    """What to do about a cell that has not ended.

    Args:
        state: Where it stands.
        alive: Whether what it waits for goes on: its job or, if it is held, the cell whose step scales it uses.
        result: How that ended; None: not known.
    """
    if state.phase is Phase.WAITING:
        return Action.SUBMIT
    if state.phase in (Phase.LOST, Phase.LEFT):
        return Action.WAIT
    if alive:
        return Action.FIND if state.phase is Phase.MISSED else Action.WAIT
    if state.phase is Phase.SUBMITTED:
        return Action.MISS
    if result is not None and result.canceled:
        return Action.LEAVE
    if state.phase is Phase.HELD:
        return Action.SUBMIT
    return Action.WAIT if result is None else _after_job(state, result)


def _after_job(state: CellState, result: JobResult) -> Action:
    """What to do when a job has gone for good without an end of its cell."""
    if result.preempted:
        return Action.RESUBMIT
    if result.completed:
        return Action.RESUBMIT if state.completions + 1 < MAX_DEATHS else Action.LEAVE
    return Action.RESUBMIT if state.deaths + 1 < MAX_DEATHS else Action.LOSE


def describe(action: Action, state: CellState, result: JobResult | None, out: Path) -> str:
    """What to say of an action in one line; empty: nothing."""
    reason = f" ({result.reason})" if result is not None and result.reason else ""
    completed = result is not None and result.completed
    if action is Action.RESUBMIT:
        ending = "completed, and its end is not to be seen" if completed else f"ended early{reason}"
        return f"its job {state.handle} {ending}; submitted again"
    if action is Action.LOSE:
        return f"its job ended early {MAX_DEATHS} times{reason}"
    if action is not Action.LEAVE:
        return ""
    if state.phase is Phase.HELD:
        why = "the cell whose step scales it uses was canceled"
    elif completed:
        why = f"{MAX_DEATHS} jobs completed, and its end is not to be seen in {out}: do they share it?"
    else:
        why = "its job was canceled"
    return f"{why}; the same command runs it"
