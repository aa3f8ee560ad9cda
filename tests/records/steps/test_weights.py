"""Effective sample sizes and log-weights against their definitions."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps.weights import kish_ess_ratio

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
