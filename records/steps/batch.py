"""The consumed batch itself: how long its responses are, and whether its evidence could be used."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Diagnostic, Reported
from vcpo_bench.records.step_facts import StepFacts


class MeanLength(Diagnostic):
    """Length of the responses."""

    name = "length_mean"
    unit = "tokens"
    meaning = "mean number of loss-carrying tokens of a consumed trajectory"
    label = "response length (tokens)"

    def compute(self, facts: StepFacts) -> float:
        """Over the trajectories."""
        return float(facts.mask.sum(-1).mean())


COLUMNS = (
    MeanLength(),
    Reported(
        "nonfinite",
        "field",
        "field of the evidence that was not finite (the step was skipped), or empty",
        kind="str",
    ),
)
