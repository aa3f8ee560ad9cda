"""What to do about a cell, in every phase and whatever its scheduler says."""

from itertools import product
from pathlib import Path

import pytest

from vcpo_bench.bench.running.cell_job import MAX_DEATHS
from vcpo_bench.bench.running.schedulers.loop.cell_state import Action, CellState, Phase, describe, next_action
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult

UNKNOWN = None
DIED = JobResult(reason="NODE_FAIL")
COMPLETED = JobResult(reason="COMPLETED", completed=True)
CANCELED = JobResult(canceled=True, reason="CANCELLED")
PREEMPTED = JobResult(reason="PREEMPTED", preempted=True)
RESULTS = (UNKNOWN, DIED, COMPLETED, CANCELED, PREEMPTED)

GONE: dict[Phase, tuple[Action, ...]] = {
    Phase.WAITING: (Action.SUBMIT,) * 5,
    Phase.HELD: (Action.SUBMIT, Action.SUBMIT, Action.SUBMIT, Action.LEAVE, Action.SUBMIT),
    Phase.SUBMITTED: (Action.MISS,) * 5,
    Phase.MISSED: (Action.WAIT, Action.RESUBMIT, Action.RESUBMIT, Action.LEAVE, Action.RESUBMIT),
    Phase.LOST: (Action.WAIT,) * 5,
    Phase.LEFT: (Action.WAIT,) * 5,
}
"""By phase: what to do when what the cell waits for is gone, for each of `RESULTS`."""
ALIVE = dict.fromkeys(Phase, Action.WAIT) | {Phase.WAITING: Action.SUBMIT, Phase.MISSED: Action.FIND}
"""By phase: what to do while what the cell waits for goes on, whatever the result."""

NEXT = {
    Action.SUBMIT: Phase.WAITING,
    Action.MISS: Phase.MISSED,
    Action.FIND: Phase.SUBMITTED,
    Action.RESUBMIT: Phase.WAITING,
    Action.LOSE: Phase.LOST,
    Action.LEAVE: Phase.LEFT,
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("alive", [True, False])
def test_every_transition(phase: Phase, alive: bool, result: JobResult | None) -> None:
    state = CellState(phase, "7_0", missed=1.0)
    action = next_action(state, alive, result)
    assert action is (ALIVE[phase] if alive else GONE[phase][RESULTS.index(result)])
    after = state.after(action, result, now=5.0)
    assert after.phase is NEXT.get(action, phase)
    assert after.handle == "7_0"
    assert after.missed == (5.0 if action is Action.MISS else 1.0)


@pytest.mark.parametrize(("deaths", "completions"), [*product(range(MAX_DEATHS), repeat=2)])
def test_deaths_and_completions_are_counted_apart(deaths: int, completions: int) -> None:
    state = CellState(Phase.MISSED, "7_0", deaths=deaths, completions=completions)
    died, completed = (next_action(state, False, result) for result in (DIED, COMPLETED))
    assert died is (Action.LOSE if deaths == MAX_DEATHS - 1 else Action.RESUBMIT)
    assert completed is (Action.LEAVE if completions == MAX_DEATHS - 1 else Action.RESUBMIT)
    after_death, after_completion = state.after(died, DIED, 0.0), state.after(completed, COMPLETED, 0.0)
    assert (after_death.deaths, after_death.completions) == (deaths + 1, completions)
    assert (after_completion.deaths, after_completion.completions) == (deaths, completions + 1)


def test_a_canceled_job_is_not_counted() -> None:
    state = CellState(Phase.MISSED, "7_0", deaths=1, completions=1)
    after = state.after(next_action(state, False, CANCELED), CANCELED, 0.0)
    assert (after.phase, after.deaths, after.completions) == (Phase.LEFT, 1, 1)


def test_a_job_that_makes_way_is_submitted_again_however_often() -> None:
    state = CellState(Phase.MISSED, "7_0", deaths=MAX_DEATHS - 1, completions=MAX_DEATHS - 1)
    after = state.after(next_action(state, False, PREEMPTED), PREEMPTED, 0.0)
    assert (after.phase, after.deaths, after.completions) == (Phase.WAITING, MAX_DEATHS - 1, MAX_DEATHS - 1)


def test_a_scheduler_is_asked_about_jobs_that_may_live() -> None:
    asked = {phase for phase in Phase if CellState(phase, "7_0").has_job}
    assert asked == {Phase.SUBMITTED, Phase.MISSED}
    assert CellState().submitted("7_0").has_job
    assert CellState().held().phase is Phase.HELD


@pytest.mark.parametrize(
    ("action", "phase", "result", "line"),
    [
        (Action.RESUBMIT, Phase.MISSED, DIED, "its job 7_0 ended early (NODE_FAIL); submitted again"),
        (Action.RESUBMIT, Phase.MISSED, JobResult(), "its job 7_0 ended early; submitted again"),
        (
            Action.RESUBMIT,
            Phase.MISSED,
            COMPLETED,
            "its job 7_0 completed, and its end is not to be seen; submitted again",
        ),
        (Action.LOSE, Phase.MISSED, DIED, "its job ended early 3 times (NODE_FAIL)"),
        (Action.LEAVE, Phase.MISSED, CANCELED, "its job was canceled; the same command runs it"),
        (
            Action.LEAVE,
            Phase.HELD,
            CANCELED,
            "the cell whose step scales it uses was canceled; the same command runs it",
        ),
        (
            Action.LEAVE,
            Phase.MISSED,
            COMPLETED,
            "3 jobs completed, and its end is not to be seen in out: do they share it?; the same command runs it",
        ),
        *((action, Phase.SUBMITTED, None, "") for action in (Action.WAIT, Action.SUBMIT, Action.MISS, Action.FIND)),
    ],
)
def test_what_is_said(action: Action, phase: Phase, result: JobResult | None, line: str) -> None:
    assert describe(action, CellState(phase, "7_0"), result, Path("out")) == line
