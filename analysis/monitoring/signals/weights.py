"""Signals of the importance weights: how far the policy has moved from the one that sampled."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, signal

CAP = 8.0
"""Cap of `|TIS - 1|`: the comparison's sequence truncation."""


@signal("weights")
def ess(ess_ratio: Array) -> Array:
    """Kish ESS of the raw sequence weights is low: -log(ess_ratio)."""
    return -np.log(ess_ratio)


@signal("weights")
def ess_used(ess_ratio_used: Array) -> Array:
    """ESS of the weights the method applied is low: -log(ess_ratio_used)."""
    return -np.log(ess_ratio_used)


@signal("weights")
def token_ess(token_ess_ratio: Array) -> Array:
    """ESS of the token ratios is low: -log(token_ess_ratio)."""
    return -np.log(token_ess_ratio)


@signal("weights")
def ess_beyond_kl(ess_ratio: Array, kl_mu_theta_k3: Array, length_mean: Array) -> Array:
    """ESS lower than the KL explains: -log(ess_ratio) - 2 x token KL (k3) x mean length.

    It is the logarithm of exp(-2 L K3) over the ESS ratio: 0 for log-normal weights.
    """
    return -np.log(ess_ratio) - 2 * kl_mu_theta_k3 * length_mean


@signal("weights")
def kl(kl_mu_theta_k3: Array) -> Array:
    """Token KL(mu || theta), estimator k3."""
    return kl_mu_theta_k3


@signal("weights")
def kl_length(kl_mu_theta_k3: Array, length_mean: Array) -> Array:
    """Token KL (k3) times mean length: nats per sequence."""
    return kl_mu_theta_k3 * length_mean


@signal("weights")
def dose(kl_mu_theta_k3: Array, lr: Array, lag_mean: Array) -> Array:
    """Token KL (k3) x learning rate of the step x mean lag: how much stale movement an update adds."""
    return kl_mu_theta_k3 * lr * lag_mean


@signal("weights")
def max_weight(log_weight_max: Array) -> Array:
    """Largest sequence log-weight."""
    return log_weight_max


@signal("weights")
def log_weight_low(log_weight_q05: Array) -> Array:
    """Minus the 5% quantile of the sequence log-weights: what the policy gives up."""
    return -log_weight_q05


@signal("weights")
def log_weight_tails(log_weight_q05: Array, log_weight_q95: Array) -> Array:
    """95% minus 5% quantile of the sequence log-weights: both tails."""
    return log_weight_q95 - log_weight_q05


@signal("weights")
def log_weight_var(log_weight_var: Array) -> Array:
    """Variance of the sequence log-weights."""
    return log_weight_var


@signal("weights")
def tis(
    log_weight_max: Array,
    log_weight_q05: Array,
    log_weight_q25: Array,
    log_weight_q50: Array,
    log_weight_q75: Array,
    log_weight_q95: Array,
) -> Array:
    """Mean |min(w, 8) - 1| from the recorded quantiles of the weights.

    By the trapezoidal rule over the quantiles, the smallest taken down to 0.
    """
    logs = [log_weight_q05, log_weight_q05, log_weight_q25, log_weight_q50, log_weight_q75, log_weight_q95]
    heights = [np.abs(np.minimum(np.exp(one), CAP) - 1) for one in (*logs, log_weight_max)]
    return np.asarray(np.trapezoid(heights, [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0], axis=0))


@signal("weights")
def clipped(share_clipped: Array) -> Array:
    """Share of tokens clipped or capped."""
    return share_clipped
