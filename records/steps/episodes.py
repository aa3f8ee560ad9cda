"""Episodes with an environment: turns, calls and what went wrong with them. Null where the task has none."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Diagnostic
from vcpo_bench.records.step_facts import EPISODE_FACTS, StepFacts


class EpisodeMean(Diagnostic):
    """The mean of one count over the consumed trajectories.

    Args:
        fact: One of `EPISODE_FACTS`; the column is `episode_FACT`.
        unit: Its unit.
        meaning: What it is, in one line.
    """

    def __init__(self, fact: str, unit: str, meaning: str) -> None:
        self.name, self.unit, self.meaning = f"episode_{fact}", unit, meaning
        self._place = EPISODE_FACTS.index(fact)

    def compute(self, facts: StepFacts) -> float | None:
        """Over the trajectories."""
        return None if facts.episodes is None else float(facts.episodes[:, self._place].mean())


COLUMNS = (
    EpisodeMean("turns", "turns", "environment: mean turns of the policy per trajectory"),
    EpisodeMean("calls", "turns", "environment: mean turns per trajectory that were a call it carried out"),
    EpisodeMean("malformed_calls", "turns", "environment: mean turns per trajectory that were an unreadable call"),
    EpisodeMean("void_turns", "turns", "environment: mean turns per trajectory that were neither call nor answer"),
    EpisodeMean("observed", "tokens", "environment: mean tokens it inserted per trajectory; they carry no loss"),
    EpisodeMean("truncated", "0..1", "environment: share of trajectories that ran out of tokens"),
    EpisodeMean("turn_limited", "0..1", "environment: share of trajectories that ran out of turns"),
)
