"""Importance weights of the consumed trajectories: effective sample sizes and the spread of the log-weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from vcpo_bench.records.diagnostic import Diagnostic, MethodMetric
from vcpo_bench.records.pareto_shape import pareto_k
from vcpo_bench.records.step_facts import PERCENTS, Floats, StepFacts

CLIP = 0.2
"""Distance of a token ratio from 1 that PPO's usual bounds allow."""


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


def _outside_clip(facts: StepFacts) -> float:
    """PPO removes the gradient of those among them whose advantage would move them further out."""
    ratio = facts.log_ratio[facts.mask]
    if ratio.size == 0 or np.isnan(ratio).any():  # which no comparison would show
        return float("nan")
    return float(((ratio < np.log(1 - CLIP)) | (ratio > np.log(1 + CLIP))).mean())


def _quantile(percent: int, facts: StepFacts) -> float:
    """By linear interpolation."""
    return facts.log_weight_quantiles[percent]


COLUMNS = (
    Diagnostic(
        "ess_ratio",
        "1/n..1",
        "Kish ESS of the raw sequence weights over the trajectories consumed",
        lambda facts: kish_ess_ratio(facts.log_weights),
        label="ESS ratio",
        log_axis=True,
    ),
    MethodMetric(
        "ess_ratio_used", "1/n..1", "(sum w)^2 / (n sum w^2) of the weights the method applied; null: it applied none"
    ),
    Diagnostic(
        "log_weight_max",
        "nats",
        "largest sequence log-weight log pi(y|x) - log mu(y|x)",
        lambda facts: float(facts.log_weights.max()),
        label="max log-weight",
    ),
    *(
        Diagnostic(
            f"log_weight_q{percent:02}",
            "nats",
            f"{'median' if percent == 50 else f'{percent}% quantile'} of the sequence log-weights",
            partial(_quantile, percent),
        )
        for percent in PERCENTS
    ),
    Diagnostic(
        "log_weight_var",
        "nats^2",
        "population variance of the sequence log-weights",
        lambda facts: float(facts.log_weights.var()),
        label="log-weight variance",
    ),
    Diagnostic(
        "token_ess_ratio",
        "1/n..1",
        "Kish ESS of the token ratios over the tokens consumed",
        lambda facts: kish_ess_ratio(facts.log_ratio[facts.mask]),
        level="diagnostics",
        label="token ESS ratio",
        log_axis=True,
    ),
    Diagnostic(
        "share_outside_clip",
        "0..1",
        "share of tokens whose ratio pi / mu is outside 0.8 to 1.2, PPO's usual bounds, for any method",
        _outside_clip,
        level="diagnostics",
        label="tokens outside 0.8 to 1.2",
    ),
    Diagnostic(  # of one update: mostly noise and prior for a few dozen trajectories
        "pareto_khat",
        "1",
        "Pareto k-hat of the sequence weights; null below 25 trajectories or with a constant tail",
        lambda facts: float(pareto_k(facts.log_weights)),
        level="diagnostics",
        label="k-hat",
    ),
)
