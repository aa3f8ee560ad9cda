"""Episodes with an environment: turns, calls and what went wrong with them. Null where the task has none."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Diagnostic
from vcpo_bench.records.step_facts import EPISODE_FACTS, StepFacts


def _mean(fact: str, unit: str, meaning: str) -> Diagnostic:
    """The mean of one of `EPISODE_FACTS` over the consumed trajectories."""
    place = EPISODE_FACTS.index(fact)

    def compute(facts: StepFacts) -> float | None:
        return None if facts.episodes is None else float(facts.episodes[:, place].mean())

    return Diagnostic(f"episode_{fact}", unit, meaning, compute)


COLUMNS = (
    _mean("turns", "turns", "environment: mean turns of the policy per trajectory"),
    _mean("calls", "turns", "environment: mean turns per trajectory that were a call it carried out"),
    _mean("malformed_calls", "turns", "environment: mean turns per trajectory that were an unreadable call"),
    _mean("void_turns", "turns", "environment: mean turns per trajectory that were neither call nor answer"),
    _mean("observed", "tokens", "environment: mean tokens it inserted per trajectory; they carry no loss"),
    _mean("truncated", "0..1", "environment: share of trajectories that ran out of tokens"),
    _mean("turn_limited", "0..1", "environment: share of trajectories that ran out of turns"),
)
