import numpy as np
import pytest

from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k, reliability_limit, tail, tail_length


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
