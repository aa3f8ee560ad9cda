"""Importance weights of the consumed trajectories: effective sample sizes and the spread of the log-weights."""

from __future__ import annotations

import numpy as np

from vcpo_bench.records.column import Level
from vcpo_bench.records.diagnostic import Diagnostic, MethodMetric
from vcpo_bench.records.pareto_shape import pareto_k
from vcpo_bench.records.step_facts import PERCENTS, Floats, StepFacts


def kish_ess_ratio(log_weights: Floats) -> float:
    """Kish effective sample size over n, (sum w)^2 / (n sum w^2), in log space.

    Args:
        log_weights: `[n]` finite log-weights, in nats, of any scale.

    Returns:
        A number in [1/n, 1]; NaN for no weights.
    """
    if log_weights.size == 0:
        return float("nan")
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights.size * np.square(weights).sum()))


class EssRatio(Diagnostic):
    """Effective sample size of the sequence weights, before any method changes them."""

    name = "ess_ratio"
    unit = "1/n..1"
    meaning = "Kish ESS of the raw sequence weights over the trajectories consumed"
    label = "ESS ratio"
    log_axis = True

    def compute(self, facts: StepFacts) -> float:
        """Over n trajectories."""
        return kish_ess_ratio(facts.log_weights)


class TokenEssRatio(Diagnostic):
    """Effective sample size of the token ratios, all tokens of the batch together."""

    name = "token_ess_ratio"
    unit = "1/n..1"
    meaning = "Kish ESS of the token ratios over the tokens consumed"
    level: Level = "diagnostics"
    label = "token ESS ratio"
    log_axis = True

    def compute(self, facts: StepFacts) -> float:
        """Over n tokens."""
        return kish_ess_ratio(facts.log_ratio[facts.mask])


class LogWeightMax(Diagnostic):
    """The heaviest trajectory."""

    name = "log_weight_max"
    unit = "nats"
    meaning = "largest sequence log-weight log pi(y|x) - log mu(y|x)"
    label = "max log-weight"

    def compute(self, facts: StepFacts) -> float:
        """Over the trajectories."""
        return float(facts.log_weights.max())


class LogWeightQuantile(Diagnostic):
    """A quantile of the sequence log-weights.

    Args:
        percent: Which, one of `PERCENTS`.
    """

    unit = "nats"

    def __init__(self, percent: int) -> None:
        self.percent = percent
        self.name = f"log_weight_q{percent:02}"
        which = "median" if percent == 50 else f"{percent}% quantile"
        self.meaning = f"{which} of the sequence log-weights"

    def compute(self, facts: StepFacts) -> float:
        """By linear interpolation."""
        return facts.log_weight_quantiles[self.percent]


class LogWeightVariance(Diagnostic):
    """The spread of the sequence log-weights."""

    name = "log_weight_var"
    unit = "nats^2"
    meaning = "population variance of the sequence log-weights"
    label = "log-weight variance"

    def compute(self, facts: StepFacts) -> float:
        """Over the trajectories."""
        return float(facts.log_weights.var())


class ParetoKhat(Diagnostic):
    """The tail of the sequence weights of one update: mostly noise and prior for a few dozen trajectories."""

    name = "pareto_khat"
    unit = "1"
    meaning = "Pareto k-hat of the sequence weights; null below 25 trajectories or with a constant tail"
    level: Level = "diagnostics"
    label = "k-hat"

    def compute(self, facts: StepFacts) -> float:
        """Over the trajectories."""
        return float(pareto_k(facts.log_weights))


COLUMNS = (
    EssRatio(),
    MethodMetric(
        "ess_ratio_used", "1/n..1", "(sum w)^2 / (n sum w^2) of the weights the method applied; null: it applied none"
    ),
    LogWeightMax(),
    *(LogWeightQuantile(percent) for percent in PERCENTS),
    LogWeightVariance(),
    TokenEssRatio(),
    ParetoKhat(),
)
