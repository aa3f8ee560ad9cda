"""Effective sample sizes, log-weights, divergences and realized lags against their definitions."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps.weights import _outside_clip, kish_ess_ratio

Facts = Callable[..., StepFacts]
Value = Callable[[str, StepFacts], float]


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


def test_masked_tokens_do_not_count_whatever_they_hold(facts: Facts, value: Value) -> None:
    mask = np.array([[True, True, False], [True, False, False]])
    seen = facts([[0.1, -0.3, np.nan], [0.2, np.inf, -np.inf]], mask=mask)
    logs, tokens = np.array([-0.2, 0.2]), np.array([0.1, -0.3, 0.2])
    assert value("ess_ratio", seen) == pytest.approx(kish_ess_ratio(logs))
    assert value("token_ess_ratio", seen) == pytest.approx(kish_ess_ratio(tokens))
    assert value("log_weight_max", seen) == pytest.approx(0.2)
    assert value("log_weight_var", seen) == pytest.approx(0.04)
    assert value("length_mean", seen) == 1.5


def test_the_share_outside_the_clip_counts_tokens_on_both_sides(facts: Facts, value: Value) -> None:
    mask = np.array([[True, True, True], [True, True, False]])
    seen = facts(np.log([[0.79, 0.81, 1.19], [1.21, 1.0, 5.0]]), mask=mask)
    assert value("share_outside_clip", seen) == pytest.approx(2 / 5)


@pytest.mark.parametrize(("logs", "counted"), [([[0.5, np.nan]], [[True, True]]), ([[0.5, 0.5]], [[False, False]])])
def test_the_share_outside_the_clip_is_unknown_without_ratios(
    facts: Facts, logs: list[list[float]], counted: list[list[bool]]
) -> None:
    assert math.isnan(_outside_clip(facts(logs, mask=np.array(counted))))


def test_quantiles_are_those_of_the_sequence_weights(facts: Facts, value: Value) -> None:
    seen = facts(np.arange(0.0, 101.0)[:, None])
    assert [value(f"log_weight_q{q:02}", seen) for q in (5, 25, 50, 75, 95)] == pytest.approx([5, 25, 50, 75, 95])


def test_a_metric_the_method_does_not_define_is_null(facts: Facts, value: Value) -> None:
    assert value("ess_ratio_used", facts()) is None
    assert value("ess_ratio_used", facts(method_metrics={"ess_ratio_used": math.nan})) is None
    assert value("ess_ratio_used", facts(method_metrics={"ess_ratio_used": 0.5})) == 0.5


def test_khat_needs_25_trajectories_and_finds_a_heavy_tail(facts: Facts, value: Value) -> None:
    assert math.isnan(value("pareto_khat", facts(np.zeros((24, 1)))))
    assert math.isnan(value("pareto_khat", facts(np.zeros((400, 1)))))  # constant: on policy
    logs = np.random.default_rng(0).exponential(0.8, size=(4000, 1))  # weights with a Pareto tail of shape 0.8
    assert value("pareto_khat", facts(logs)) == pytest.approx(0.8, abs=0.3)


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


def test_lag_is_counted_from_the_oldest_generated_token(
    facts: Callable[..., StepFacts], value: Callable[[str, StepFacts], float]
) -> None:
    version = np.array([[3, 4, 0], [5, 5, 5]])
    mask = np.array([[True, True, False], [True, True, True]])
    seen = facts(np.zeros((2, 3)), step=6, version=version, mask=mask)
    names = ("lag_min", "lag_mean", "lag_max", "version_oldest", "version_newest", "version_mean")
    expected = [1, (3 + 2 + 1 + 1 + 1) / 5, 3, 3, 5, (3 + 4 + 5 + 5 + 5) / 5]
    assert [value(name, seen) for name in names] == pytest.approx(expected)
    assert seen.lags.tolist() == [3, 1]
    assert facts(np.zeros((2, 3)), step=5, version=version, mask=mask).lags.tolist() == [2, 0]
    assert {type(value(name, seen)) for name in ("lag_min", "lag_max", "version_oldest", "version_newest")} == {int}
