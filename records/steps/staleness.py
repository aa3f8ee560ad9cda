"""How old the consumed data are: realized lags and the versions of the weights that sampled them."""

from __future__ import annotations

from vcpo_bench.records.column import Kind
from vcpo_bench.records.diagnostic import Diagnostic, Reported
from vcpo_bench.records.step_facts import StepFacts


class LagMin(Diagnostic):
    """The freshest trajectory."""

    name = "lag_min"
    unit = "updates"
    meaning = "smallest lag of a trajectory's oldest token"
    kind: Kind = "int"

    def compute(self, facts: StepFacts) -> int:
        """Over the trajectories."""
        return int(facts.lags.min())


class LagMean(Diagnostic):
    """The usual token."""

    name = "lag_mean"
    unit = "updates"
    meaning = "mean lag over tokens"

    def compute(self, facts: StepFacts) -> float:
        """Over the tokens."""
        return float(facts.token_lags.mean())


class LagMax(Diagnostic):
    """The stalest trajectory."""

    name = "lag_max"
    unit = "updates"
    meaning = "largest lag of a trajectory's oldest token"
    kind: Kind = "int"

    def compute(self, facts: StepFacts) -> int:
        """Over the trajectories."""
        return int(facts.lags.max())


class VersionOldest(Diagnostic):
    """The oldest weights that sampled something here."""

    name = "version_oldest"
    unit = "updates"
    meaning = "oldest version among the consumed tokens"
    kind: Kind = "int"

    def compute(self, facts: StepFacts) -> int:
        """Over the tokens."""
        return int(facts.token_versions.min())


class VersionNewest(Diagnostic):
    """The newest weights that sampled something here."""

    name = "version_newest"
    unit = "updates"
    meaning = "newest version among the consumed tokens"
    kind: Kind = "int"

    def compute(self, facts: StepFacts) -> int:
        """Over the tokens."""
        return int(facts.token_versions.max())


class VersionMean(Diagnostic):
    """The usual weights that sampled here."""

    name = "version_mean"
    unit = "updates"
    meaning = "mean version of the consumed tokens"

    def compute(self, facts: StepFacts) -> float:
        """Over the tokens."""
        return float(facts.token_versions.mean())


COLUMNS = (
    LagMin(),
    LagMean(),
    LagMax(),
    VersionOldest(),
    VersionNewest(),
    VersionMean(),
    Reported("filling", "yes/no", "the pipeline is still filling: the lag is bounded by the run's age", kind="bool"),
)
