"""What is measured of every update, from the small per-token arrays: weights, divergences, lags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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


def weight_metrics(log_ratio: Floats, mask: Bools) -> dict[str, float]:
    """Sequence-weight and divergence columns of one consumed batch.

    Args:
        log_ratio: `[n, T]` log pi_theta - log mu per token, in nats; ignored where `mask` is False.
        mask: `[n, T]` tokens that carry loss.

    Returns:
        The columns `ess_ratio`, `log_weight_*`, `kl_mu_theta_*` and `length_mean` of `records.STEPS`.
        Samples come from mu, so with l the log-ratio KL(mu || theta) is estimated by mean(-l) and mean(e^l - 1 - l).
    """
    ratio = np.where(mask, log_ratio, 0.0)
    log_weights = ratio.sum(-1)
    tokens = max(int(mask.sum()), 1)
    low, quarter, median, upper, high = np.quantile(log_weights, (0.05, 0.25, 0.5, 0.75, 0.95))
    return {
        "ess_ratio": kish_ess_ratio(log_weights),
        "log_weight_max": float(log_weights.max()),
        "log_weight_q05": float(low),
        "log_weight_q25": float(quarter),
        "log_weight_q50": float(median),
        "log_weight_q75": float(upper),
        "log_weight_q95": float(high),
        "log_weight_var": float(log_weights.var()),
        "kl_mu_theta_k1": float(-log_weights.sum() / tokens),
        "kl_mu_theta_k3": float(np.sum(np.expm1(np.minimum(ratio, 80.0)) - ratio) / tokens),
        "length_mean": float(mask.sum(-1).mean()),
    }


def lag_metrics(
    version: NDArray[np.int64], mask: Bools, now: int
) -> tuple[dict[str, float], dict[int, tuple[int, int]]]:
    """Realized lag of one consumed batch.

    Args:
        version: `[n, T]` updates seen by the weights that sampled each token.
        mask: `[n, T]` generated tokens.
        now: Updates applied before this one.

    Returns:
        The `lag_*` and `version_*` columns, and by lag the number of trajectories whose oldest token has it and the
        number of tokens that have it.
    """
    token_lag = now - version
    oldest = np.where(mask, token_lag, -1).max(-1)
    oldest = oldest[oldest >= 0]
    versions = version[mask]
    columns = {
        "lag_min": int(oldest.min()),
        "lag_mean": float(token_lag[mask].mean()),
        "lag_max": int(oldest.max()),
        "version_oldest": int(versions.min()),
        "version_newest": int(versions.max()),
        "version_mean": float(versions.mean()),
    }
    trajectories, tokens = np.bincount(oldest), np.bincount(token_lag[mask])
    trajectories.resize(max(len(trajectories), len(tokens)), refcheck=False)
    tokens.resize(len(trajectories), refcheck=False)
    present = np.flatnonzero(trajectories + tokens).tolist()
    return columns, {lag: (int(trajectories[lag]), int(tokens[lag])) for lag in present}
