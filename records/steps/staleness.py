"""How old the consumed data are: realized lags and the versions of the weights that sampled them."""

from __future__ import annotations

from collections.abc import Callable

from vcpo_bench.records.diagnostic import Diagnostic, Reported
from vcpo_bench.records.step_facts import StepFacts


def _whole(name: str, meaning: str, compute: Callable[[StepFacts], int]) -> Diagnostic:
    return Diagnostic(name, "updates", meaning, compute, kind="int")


def _mean(name: str, meaning: str, compute: Callable[[StepFacts], float]) -> Diagnostic:
    return Diagnostic(name, "updates", meaning, compute)


COLUMNS = (
    _whole("lag_min", "smallest lag of a trajectory's oldest token", lambda facts: int(facts.lags.min())),
    _mean("lag_mean", "mean lag over tokens", lambda facts: float(facts.token_lags.mean())),
    _whole("lag_max", "largest lag of a trajectory's oldest token", lambda facts: int(facts.lags.max())),
    _whole("version_oldest", "oldest version among the consumed tokens", lambda facts: int(facts.token_versions.min())),
    _whole("version_newest", "newest version among the consumed tokens", lambda facts: int(facts.token_versions.max())),
    _mean("version_mean", "mean version of the consumed tokens", lambda facts: float(facts.token_versions.mean())),
    Reported("filling", "yes/no", "the pipeline is still filling: the lag is bounded by the run's age", kind="bool"),
)
