import time

import numpy as np
import pytest

from vcpo_bench.analysis.comparison.aggregates import (
    aggregates,
    iqm,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    resamples,
)
from vcpo_bench.analysis.percentile_interval import percentile_interval


def draws(mean: float, seed: int, strata: int = 4, seeds: int = 8) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(mean, 0.1, seeds) for _ in range(strata)]


def test_iqm_drops_a_quarter_at_each_end():
    assert iqm(np.array([0, 1, 2, 100.0])) == 1.5
    assert iqm(np.array([[5.0], [7.0]])).tolist() == [5, 7]


def test_optimality_gap_does_not_reward_overshooting():
    assert optimality_gap(np.array([0.5, 3.0])) == 0.25


def test_intervals_contain_the_truth_about_as_often_as_they_say():
    found = [aggregates(draws(0.6, seed), replications=400, seed=seed)["iqm"] for seed in range(100)]
    assert 84 <= sum(one.low <= 0.6 <= one.high for one in found) <= 100


def test_strata_may_be_ragged_or_empty():
    ragged = [np.array([0.1, 0.2]), np.array([]), np.array([0.9])]
    found = aggregates(ragged, replications=50)
    assert found["mean"].value == pytest.approx((0.15 + 0.9) / 2)
    assert np.isnan(aggregates([np.array([])])["iqm"].value)
    assert np.isnan(probability_of_improvement([np.array([])], [np.ones(3)]).value)
    assert np.isnan(performance_profile([], [0.5])[0]).all()


def test_same_seed_same_interval():
    assert aggregates(draws(0.5, 0), replications=100, seed=3) == aggregates(draws(0.5, 0), replications=100, seed=3)
    assert aggregates(draws(0.5, 0), replications=100, seed=3) != aggregates(draws(0.5, 0), replications=100, seed=4)


def test_probability_of_improvement_is_a_comparison():
    better, worse = draws(0.7, 0), draws(0.5, 1)
    forward, backward = probability_of_improvement(better, worse), probability_of_improvement(worse, better)
    assert forward.value == pytest.approx(1 - backward.value)
    assert forward.low > 0.5 > backward.high
    assert probability_of_improvement([np.ones(3)], [np.ones(3)]).value == 0.5


def test_the_interval_of_an_improvement_is_that_of_every_drawn_pair():
    rng = np.random.default_rng(5)
    first = [np.round(rng.random(size), 1) for size in (1, 4, 9)]  # with ties
    second = [np.round(rng.random(size), 1) for size in (3, 4, 2)]
    found = probability_of_improvement(first, second, replications=3000, seed=7)
    shares = []
    for x, y in zip(resamples(first, 3000, 7), resamples(second, 3000, 8), strict=True):
        difference = [np.round(a[:, :, None] - b[:, None, :], 9) for a, b in zip(x, y, strict=True)]
        won = [((one > 0) + (one == 0) / 2).mean(axis=(1, 2)) for one in difference]
        shares.append(np.mean(won, axis=0))
    assert (found.low, found.high) == pytest.approx(percentile_interval(found.value, np.concatenate(shares)))


def test_profile_falls_and_its_band_holds_it():
    share, low, high = performance_profile(draws(0.5, 0), np.linspace(0, 1, 21), replications=500)
    assert (np.diff(share) <= 0).all()
    assert (low <= share).all()
    assert (share <= high).all()
    assert share[0] == 1
    assert share[-1] == 0
    again = performance_profile(draws(0.5, 0), np.linspace(0, 1, 21), replications=500, seed=0)
    np.testing.assert_array_equal((share, low, high), again)  # what a report shows is the same every time


def test_ten_thousand_replications_are_quick():
    began = time.perf_counter()
    aggregates(draws(0.5, 0, strata=12, seeds=6))
    assert time.perf_counter() - began < 5  # about 0.2 s on a quiet core


def test_scores_equal_up_to_rounding_are_ties_and_not_above_a_level():
    same = (0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3
    assert same[0] != same[1]
    assert probability_of_improvement([np.array(same[:1])], [np.array(same[1:])]).value == 0.5
    share, _, _ = performance_profile([np.array([max(same), 0.5])], [min(same)], replications=10)
    assert share.tolist() == [0.5]
    share, _, high = performance_profile([np.array([max(same)])], [min(same)], replications=10)
    assert (share[0], high[0]) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_every_estimate_lies_inside_its_interval(seed):
    rng = np.random.default_rng(seed)
    strata = [rng.random(rng.integers(1, 5)) ** 6 for _ in range(3)]
    for one in aggregates(strata, replications=30, seed=seed).values():
        assert one.low <= one.value <= one.high
    chance = probability_of_improvement(strata, strata[::-1], replications=30)
    assert chance.low <= chance.value <= chance.high
