"""Divergence from the behavior policy, and entropy."""

from collections.abc import Callable

import numpy as np
import pytest

from vcpo_bench.records.step_facts import StepFacts

Facts = Callable[..., StepFacts]
Value = Callable[[str, StepFacts], float]


def test_estimators_match_their_definitions(facts: Facts, value: Value) -> None:
    mask = np.array([[True, True, False], [True, False, False]])
    seen = facts([[0.1, -0.3, np.nan], [0.2, np.inf, -np.inf]], mask=mask)
    tokens = np.array([0.1, -0.3, 0.2])
    assert value("kl_mu_theta_k1", seen) == pytest.approx(-tokens.mean())
    assert value("kl_mu_theta_k3", seen) == pytest.approx((np.exp(tokens) - 1 - tokens).mean())


def test_kl_estimators_point_from_behavior_to_current(facts: Facts, value: Value) -> None:
    """k1 and k3 estimate the same KL(mu || theta) from samples of mu."""
    mu, theta = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    tokens = np.random.default_rng(0).choice(3, p=mu, size=(200_000, 1))
    seen = facts(np.log(theta / mu)[tokens])
    truth = float((mu * np.log(mu / theta)).sum())
    assert value("kl_mu_theta_k1", seen) == pytest.approx(truth, abs=2e-3)
    assert value("kl_mu_theta_k3", seen) == pytest.approx(truth, abs=5e-4)


@pytest.mark.parametrize(("counts", "expected"), [(True, -0.5), (False, 0.0)])
def test_an_update_of_one_token_or_none(facts: Facts, value: Value, counts: bool, expected: float) -> None:
    assert value("kl_mu_theta_k1", facts([[0.5]], mask=np.array([[counts]]))) == expected


def test_a_ratio_that_overflows_is_capped(facts: Facts, value: Value) -> None:
    assert value("kl_mu_theta_k3", facts([[800.0]])) == pytest.approx(np.exp(80.0))


def test_entropy_is_that_of_the_tokens_that_count(facts: Facts, value: Value) -> None:
    mask = np.array([[True, True, False]])
    seen = facts([[0.0, 0.0, 0.0]], mask=mask, entropy=np.array([[1.0, 2.0, 9.0]]))
    assert value("entropy", seen) == 1.5


def test_k2_is_half_the_mean_square(facts: Facts, value: Value) -> None:
    mask = np.array([[True, True, False]])
    assert value("kl_mu_theta_k2", facts([[0.4, -0.2, 9.0]], mask=mask)) == pytest.approx((0.16 + 0.04) / 4)
