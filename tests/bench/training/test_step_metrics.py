import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.bench.training.diagnostics import kish_ess_ratio, lag_metrics, weight_metrics


def test_ess_of_equal_weights_is_one_and_of_a_lone_giant_is_one_over_n() -> None:
    assert kish_ess_ratio(np.full(8, -700.0)) == pytest.approx(1.0)
    assert kish_ess_ratio(np.array([0.0] * 7 + [500.0])) == pytest.approx(1 / 8)
    assert math.isnan(kish_ess_ratio(np.array([])))


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.floats(-500, 500))
def test_ess_does_not_depend_on_the_scale_of_the_weights(logs: list[float], shift: float) -> None:
    weights = np.array(logs)
    assert kish_ess_ratio(weights + shift) == pytest.approx(kish_ess_ratio(weights), rel=1e-6)
    assert 1 / len(logs) - 1e-9 <= kish_ess_ratio(weights) <= 1 + 1e-9


def test_ess_matches_the_definition() -> None:
    logs = np.array([0.3, -0.2, 1.1])
    w = np.exp(logs)
    assert kish_ess_ratio(logs) == pytest.approx(w.sum() ** 2 / (3 * (w**2).sum()))


def test_weight_metrics_ignore_masked_tokens_whatever_they_hold() -> None:
    mask = np.array([[True, True, False], [True, False, False]])
    ratio = np.array([[0.1, -0.3, np.nan], [0.2, np.inf, -np.inf]])
    metrics = weight_metrics(ratio, mask)
    logs = np.array([-0.2, 0.2])
    assert metrics["ess_ratio"] == pytest.approx(kish_ess_ratio(logs))
    assert metrics["log_weight_max"] == pytest.approx(0.2)
    assert metrics["length_mean"] == 1.5
    tokens = np.array([0.1, -0.3, 0.2])
    assert metrics["kl_mu_theta_k1"] == pytest.approx(-tokens.mean())
    assert metrics["kl_mu_theta_k3"] == pytest.approx((np.exp(tokens) - 1 - tokens).mean())


def test_kl_estimators_point_from_behavior_to_current() -> None:
    """k1 and k3 estimate the same KL(mu || theta) from samples of mu."""
    rng = np.random.default_rng(0)
    mu, theta = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    tokens = rng.choice(3, p=mu, size=(200_000, 1))
    metrics = weight_metrics(np.log(theta / mu)[tokens], np.ones_like(tokens, dtype=bool))
    truth = float((mu * np.log(mu / theta)).sum())
    assert metrics["kl_mu_theta_k1"] == pytest.approx(truth, abs=2e-3)
    assert metrics["kl_mu_theta_k3"] == pytest.approx(truth, abs=5e-4)


def test_lag_is_counted_from_the_oldest_generated_token() -> None:
    version = np.array([[3, 4, 0], [5, 5, 5]])
    mask = np.array([[True, True, False], [True, True, True]])
    columns, lags = lag_metrics(version, mask, now=6)
    assert columns == {
        "lag_min": 1,
        "lag_max": 3,
        "lag_mean": pytest.approx((3 + 2 + 1 + 1 + 1) / 5),
        "version_oldest": 3,
        "version_newest": 5,
        "version_mean": pytest.approx((3 + 4 + 5 + 5 + 5) / 5),
    }
    assert lags == {1: (1, 3), 2: (0, 1), 3: (1, 1)}
