"""How far the policy is from the one that sampled its data, and how much randomness it keeps.

Estimators of KL(mu || theta) from samples of mu, with l = log pi - log mu: k1 is plain; k2, half the mean square, is to
second order the divergence in either direction; k3 is never negative. All are means over tokens.
"""

from __future__ import annotations

import numpy as np

from vcpo_bench.records.diagnostic import Diagnostic
from vcpo_bench.records.step_facts import StepFacts


def _k3(facts: StepFacts) -> float:
    """Log-ratios above 80 count as 80 in the exponential, which would overflow."""
    ratio = facts.masked_log_ratio
    return float(np.sum(np.expm1(np.minimum(ratio, 80.0)) - ratio) / facts.tokens)


COLUMNS = (
    Diagnostic(
        "kl_mu_theta_k1",
        "nats/token",
        "KL(mu || theta), estimator k1: mean of -l, l = log pi - log mu",
        lambda facts: float(-facts.log_weights.sum() / facts.tokens),
        label="D_KL(μ‖θ), k1",
    ),
    Diagnostic(
        "kl_mu_theta_k3",
        "nats/token",
        "KL(mu || theta), estimator k3: mean of e^l - 1 - l",
        _k3,
        label="D_KL(μ‖θ)",
        log_axis=True,
    ),
    Diagnostic(
        "entropy",
        "nats/token",
        "mean entropy of the current policy on the consumed tokens",
        lambda facts: float(facts.entropy[facts.mask].mean()),
        label="entropy (nats)",
    ),
    Diagnostic(
        "kl_mu_theta_k2",
        "nats/token",
        "KL(mu || theta), estimator k2: mean of l^2 / 2",
        lambda facts: float(np.square(facts.masked_log_ratio).sum() / 2 / facts.tokens),
        level="diagnostics",
        label="D_KL(μ‖θ), k2",
        log_axis=True,
    ),
)
