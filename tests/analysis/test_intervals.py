import numpy as np
import pytest
from scipy import stats

from vcpo_bench.analysis.intervals import (
    ENOUGH,
    few_runs,
    holm,
    reward_interval,
    sign_flip,
    stratified_t,
    t_interval,
    wilson,
)
from vcpo_bench.analysis.percentile_interval import percentile_interval


def test_t_interval_against_its_formula():
    low, high = t_interval([0.5, 0.6, 0.7, np.nan])
    half = 4.302653 * 0.1 / 3**0.5
    assert (low, high) == pytest.approx((0.6 - half, 0.6 + half), rel=1e-6)
    assert np.isnan(t_interval([0.5])).all()
    assert np.isnan(t_interval([])).all()


def test_t_interval_covers_with_three_seeds():
    draws = np.random.default_rng(0).normal(1, 1, (2000, 3))
    covered = np.mean([low <= 1 <= high for low, high in map(t_interval, draws)])
    assert covered == pytest.approx(0.95, abs=0.015)


def test_zero_of_n_bounds_the_rate_as_published():
    assert [round(wilson(0, n)[1], 2) for n in (5, 10, 20, 35)] == [0.43, 0.28, 0.16, 0.10]
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[1] == 1
    assert np.isnan(wilson(0, 0)).all()


def test_stratified_t_of_one_stratum_is_the_paired_t_test():
    differences = [0.1, -0.05, 0.2, 0.15]
    mean, low, high, p = stratified_t([differences])
    assert mean == pytest.approx(0.1)
    assert (low, high) == pytest.approx(t_interval(differences))
    assert p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)


def test_stratified_t_ignores_differences_between_strata():
    rng = np.random.default_rng(3)
    strata = [rng.normal(0.5, 0.05, 6), rng.normal(-0.3, 0.05, 6)]
    mean, low, high, _ = stratified_t(strata)
    assert mean == pytest.approx(0.1, abs=0.05)
    assert high - low < 0.2 < np.ptp(t_interval(np.concatenate(strata)))


def test_stratified_t_without_spread_or_values():
    assert np.isnan(stratified_t([])).all()
    assert np.isnan(stratified_t([[0.1], [0.2, 0.3]])[1:]).all()
    assert stratified_t([[0.0, 0.0]])[3] == 1
    assert stratified_t([[0.1] * 4])[3] == sign_flip([0.1] * 4) == 1 / 8, "their mean is rounded"


def test_sign_flip_is_exact_and_bounded():
    assert sign_flip([0.1, 0.2, 0.3, 0.4]) == 2 / 16
    assert sign_flip([1.0, -1.0]) == 1
    assert np.isnan(sign_flip([]))
    against = stats.permutation_test(
        ([0.3, -0.1, 0.2, 0.25, 0.05],), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip([0.3, -0.1, 0.2, 0.25, 0.05]) == pytest.approx(against.pvalue)
    many = np.random.default_rng(0).normal(0.5, 1, 40)
    assert sign_flip(many) == pytest.approx(stratified_t([many])[3], abs=0.01)


def test_holm_ignores_the_unknown():
    assert holm([0.01, np.nan, 0.04]).tolist() == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
    assert holm([]).size == 0
    assert holm([0.01, 0.02, 0.02]).tolist() == pytest.approx([0.03, 0.04, 0.04])  # never below a smaller p's
    assert holm([0.9, 0.8]).max() == 1


def test_seed_warnings():
    assert few_runs(1) == "1 run per method and lag: intervals and tests are shown from 6 on."


UNEQUAL = [((3, 3), (1, 0.01)), ((4, 4), (1, 0.05)), ((6, 6), (1, 0.1)), ((4, 12), (1, 0.2)), ((6, 6), (1, 1))]


@pytest.mark.parametrize(("sizes", "spreads"), UNEQUAL)
def test_stratified_t_covers_with_unequal_strata(sizes, spreads):
    rng = np.random.default_rng(7)
    draws = ([rng.normal(0, spread, size) for size, spread in zip(sizes, spreads, strict=True)] for _ in range(2000))
    covered = np.mean([low <= 0 <= high for _, low, high, _ in map(stratified_t, draws)])
    assert 0.93 <= covered <= 0.97  # 0.95 with a standard error of 0.005; one pooled spread covered 0.88 to 0.92


def test_degrees_of_freedom_are_those_of_welch():
    first, second = [0.1, 0.4, 0.2, 0.5], [1.1, 1.3, 0.2]
    _, low, high, p = stratified_t([first, -np.array(second)])
    welch = stats.ttest_ind(first, second, equal_var=False)
    assert p == pytest.approx(welch.pvalue)
    assert (2 * low, 2 * high) == pytest.approx(tuple(welch.confidence_interval()))


def test_an_interval_of_rewards_stays_within_their_range():
    high_ones, large = [0.99, 1.0, 0.9] * 2, [1.5, 2.0, 1.0] * 2
    assert reward_interval(high_ones) == (pytest.approx(t_interval(high_ones)[0]), 1.0)
    assert reward_interval([0.0] * 5 + [0.02])[0] == 0.0
    assert reward_interval(large) == t_interval(large)
    assert np.isnan(reward_interval(large[:5])).all(), "fewer than six"


def test_a_bootstrap_interval_includes_its_estimate():
    assert percentile_interval(0.9, [0.1, 0.2, 0.3, np.nan]) == pytest.approx((0.105, 0.9))
    assert percentile_interval(0.0, [0.1, 0.2, 0.3])[0] == 0.0
    assert np.isnan(percentile_interval(0.5, [])).all()


def test_a_sign_flip_test_of_five_pairs_can_never_reach_five_percent():
    for pairs in range(1, 9):
        assert sign_flip(np.full(pairs, 0.3)) == 2.0 ** (1 - pairs)
        assert (pairs >= ENOUGH) == (sign_flip(np.full(pairs, 0.3)) < 0.05)


def test_doubling_the_seeds_until_something_is_decided_is_no_test_at_five_percent() -> None:
    """What docs/analysis.md says of two equal methods."""
    draws = np.random.default_rng(0).standard_normal((4000, 4 * ENOUGH))
    looks = [[stratified_t([one[:n]])[3] < 0.05 for one in draws] for n in (ENOUGH, 2 * ENOUGH, 4 * ENOUGH)]
    assert np.mean(looks[0]) == pytest.approx(0.05, abs=0.01)
    assert np.any(looks, axis=0).mean() == pytest.approx(0.12, abs=0.01)
