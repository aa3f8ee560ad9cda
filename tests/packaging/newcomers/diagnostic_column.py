"""How many trajectories an update consumed."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Diagnostic, Value
from vcpo_bench.records.step_facts import StepFacts


class Newcomer(Diagnostic):
    """Rows of the batch."""

    name = "newcomer"
    unit = "count"
    meaning = "trajectories of the batch"

    def compute(self, facts: StepFacts) -> Value:
        """How many."""
        return float(len(facts.mask))


COLUMNS = (Newcomer(),)
