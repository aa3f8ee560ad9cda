"""How far the policy is from the one that sampled its data, and how much randomness it keeps."""

from __future__ import annotations

import numpy as np

from vcpo_bench.records.column import Level
from vcpo_bench.records.diagnostic import Diagnostic
from vcpo_bench.records.step_facts import StepFacts


class KlK1(Diagnostic):
    """KL(mu || theta) by the plain estimator: samples come from mu."""

    name = "kl_mu_theta_k1"
    unit = "nats/token"
    meaning = "KL(mu || theta), estimator k1: mean of -l, l = log pi - log mu"
    label = "D_KL(μ‖θ), k1"

    def compute(self, facts: StepFacts) -> float:
        """Mean over tokens."""
        return float(-facts.log_weights.sum() / facts.tokens)


class KlK2(Diagnostic):
    """Half the mean square of the log-ratio: to second order the divergence in either direction."""

    name = "kl_mu_theta_k2"
    unit = "nats/token"
    meaning = "KL(mu || theta), estimator k2: mean of l^2 / 2"
    level: Level = "diagnostics"
    label = "D_KL(μ‖θ), k2"
    log_axis = True

    def compute(self, facts: StepFacts) -> float:
        """Mean over tokens."""
        return float(np.square(facts.masked_log_ratio).sum() / 2 / facts.tokens)


class KlK3(Diagnostic):
    """KL(mu || theta) by the estimator that is never negative."""

    name = "kl_mu_theta_k3"
    unit = "nats/token"
    meaning = "KL(mu || theta), estimator k3: mean of e^l - 1 - l"
    label = "D_KL(μ‖θ)"
    log_axis = True

    def compute(self, facts: StepFacts) -> float:
        """Mean over tokens; log-ratios above 80 count as 80 in the exponential, which would overflow."""
        ratio = facts.masked_log_ratio
        return float(np.sum(np.expm1(np.minimum(ratio, 80.0)) - ratio) / facts.tokens)


class Entropy(Diagnostic):
    """Entropy of the current policy."""

    name = "entropy"
    unit = "nats/token"
    meaning = "mean entropy of the current policy on the consumed tokens"
    label = "entropy (nats)"

    def compute(self, facts: StepFacts) -> float:
        """Mean over tokens."""
        return float(facts.entropy[facts.mask].mean())


COLUMNS = (KlK1(), KlK3(), Entropy(), KlK2())
