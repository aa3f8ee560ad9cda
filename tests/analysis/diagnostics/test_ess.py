"""Effective sample sizes of finite batches, and the tails of weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.analysis.diagnostics.ess import (
    entropy_ess,
    expected_ess,
    gaussian_ess,
    kish_ess,
    kl_ess,
    max_weight_ess,
)
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k, reliability_limit, tail, tail_length

ALL = [kish_ess, entropy_ess, max_weight_ess]
log_weights = st.lists(st.floats(-700, 700), min_size=1, max_size=30)


@pytest.mark.parametrize("ess", ALL)
@settings(deadline=None)
@given(values=log_weights, shift=st.floats(-1e4, 1e4))
def test_between_one_weight_and_all_and_free_of_scale(ess, values, shift):
    ratio = float(ess(values))
    assert 1 / len(values) - 1e-12 <= ratio <= 1
    assert float(ess(np.array(values) + shift)) == pytest.approx(ratio, rel=1e-6)


@settings(deadline=None)
@given(values=log_weights)
def test_the_three_are_ordered(values):
    assert max_weight_ess(values) <= kish_ess(values) + 1e-12 <= entropy_ess(values) + 2e-12


@pytest.mark.parametrize("ess", ALL)
def test_equal_weights_are_all_effective_and_one_giant_is_alone(ess):
    assert ess(np.full(8, -900.0)) == pytest.approx(1)
    assert ess([0, 0, 0, 800]) == pytest.approx(1 / 4)
    assert ess([0, 0, -np.inf, -np.inf]) == pytest.approx(1 / 2)


def test_kish_against_the_raw_formula():
    w = np.array([0.3, 1.0, 2.5, 0.01])
    assert kish_ess(np.log(w)) == pytest.approx(w.sum() ** 2 / (4 * (w**2).sum()))
    p = w / w.sum()
    assert entropy_ess(np.log(w)) == pytest.approx(np.exp(-(p * np.log(p)).sum()) / 4)
    assert max_weight_ess(np.log(w)) == pytest.approx(1 / (4 * p.max()))


@pytest.mark.parametrize("ess", ALL)
def test_only_what_counts_counts(ess):
    log_w = np.array([[0.1, 0.7, np.nan], [0.1, 0.7, np.inf]])
    counted = ess(log_w, where=[[True, True, False]] * 2)
    assert counted == pytest.approx(np.full(2, ess([0.1, 0.7])))


@pytest.mark.parametrize("ess", ALL)
@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_undefined_is_nan_not_a_number(ess, bad):
    assert np.isnan(ess(bad))
    assert np.isnan(ess([0.0, 1.0], where=[False, False]))
    assert np.isfinite(ess([bad, [0.0, 0.0]])).tolist() == [False, True]


def test_a_finite_batch_overstates_a_small_ess():
    assert gaussian_ess(2.4) == pytest.approx(0.091, abs=5e-4)
    fresh = np.random.default_rng(1).normal(0, 2.4**0.5, (400, 512))
    assert float(expected_ess(2.4, 512)) == pytest.approx(np.median(kish_ess(fresh)), abs=0.004)
    assert float(expected_ess(0.0, 128)) == pytest.approx(1)
    assert (expected_ess([0.5, 2, 8], 64) > gaussian_ess([0.5, 2, 8])).all()
    assert float(expected_ess(100.0, 64)) >= 1 / 64


def test_kl_and_length_give_the_published_ratios():
    assert kl_ess(600, 3e-4) == pytest.approx(0.70, abs=0.01)  # synchronous MATH run of the VCPO paper
    assert kl_ess(600, 5e-4) == pytest.approx(0.55, abs=0.01)
    assert kl_ess(600, 2e-3) == pytest.approx(0.09, abs=0.01)


def pareto_log_weights(k: float, n: int, seed: int = 0) -> np.ndarray:
    """Logarithms of exact Pareto draws with tail index k."""
    return k * np.random.default_rng(seed).standard_exponential(n)


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9, 1.5])
def test_recovers_a_known_tail_index(k):
    assert float(pareto_k(pareto_log_weights(k, 200_000))) == pytest.approx(k, abs=0.06)


def test_the_sign_matters():
    skewed = np.random.default_rng(1).exponential(3, 500)
    assert float(pareto_k(skewed)) > 1 > 0 > float(pareto_k(-skewed))


def test_rows_equal_single_calls_and_scale_is_irrelevant():
    rows = np.random.default_rng(2).normal(0, 2, (3, 400))
    assert pareto_k(rows) == pytest.approx([float(pareto_k(row)) for row in rows])
    assert pareto_k(rows + 1e4) == pytest.approx(pareto_k(rows), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros(200), "constant"),
        (np.minimum(pareto_log_weights(1, 400), 0.5), "constant"),
        (np.arange(24.0), "fewer than 25"),
        (np.r_[np.arange(50.0), np.nan], "not finite"),
        (np.r_[np.arange(50.0), np.inf], "not finite"),
    ],
)
def test_not_applicable_is_said_instead_of_a_number(values, reason):
    fitted = tail(values)
    assert np.isnan(fitted.k)
    assert reason in fitted.reason
    assert fitted.n == values.size


def test_zero_weights_are_a_light_lower_end():
    log_w = np.r_[np.full(100, -np.inf), pareto_log_weights(0.5, 300)]
    assert np.isfinite(tail(log_w).k)


def test_interval_covers_a_known_index_most_of_the_time():
    fits = [tail(pareto_log_weights(0.7, 600, seed), replications=100) for seed in range(40)]
    covered = sum(fit.low <= 0.7 <= fit.high for fit in fits)
    assert covered >= 32
    assert all(fit.low < fit.k < fit.high for fit in fits)
    assert all(fit.n == 600 for fit in fits)


def test_published_limits():
    assert [round(reliability_limit(n), 2) for n in (32, 64, 256, 1024, 100_000)] == [0.34, 0.45, 0.58, 0.67, 0.7]
    assert [tail_length(n) for n in (24, 100, 225, 226, 1024)] == [4, 20, 45, 45, 96]
