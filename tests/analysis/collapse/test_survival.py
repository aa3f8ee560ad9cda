from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from vcpo_bench.analysis.collapse.survival import (
    kaplan_meier,
    least_p,
    log_rank,
    median_survival,
    restricted_mean,
)


def test_without_censoring_it_is_the_share_alive():
    time = np.array([3.0, 1, 4, 1, 5])
    curve = kaplan_meier(time, np.ones(5, dtype=bool))
    assert curve["survival"].tolist() == pytest.approx([(time > t).mean() for t in curve["time"]])
    assert curve["at_risk"].tolist() == [5, 5, 3, 2, 1]
    assert restricted_mean(curve, 5)[0] == pytest.approx(time.mean())


def test_nobody_fails():
    curve = kaplan_meier([10, 20], [False, False])
    assert curve["survival"].tolist() == [1, 1, 1]
    assert curve["low"].tolist() == [1, 1, 1]
    assert median_survival(curve) == np.inf
    assert restricted_mean(curve, 20) == (20, 20, 20)


def test_restricted_interval_covers():
    rng = np.random.default_rng(0)
    truth = 100 * (1 - np.exp(-1.5))  # exponential lifetimes of mean 100, seen up to 150
    covered = 0
    for _ in range(200):
        life, leaves = rng.exponential(100, 150), rng.uniform(100, 300, 150)
        _, low, high = restricted_mean(kaplan_meier(np.minimum(life, leaves), life <= leaves), 150)
        covered += low <= truth <= high
    assert 180 <= covered <= 200


def test_log_rank_against_scipy():
    rng = np.random.default_rng(1)
    life = np.r_[rng.exponential(100, 30), rng.exponential(60, 30)]
    event, time, group = life < 120, np.minimum(life, 120), np.repeat([0, 1], 30)
    first, second = (stats.CensoredData.right_censored(time[group == one], ~event[group == one]) for one in (0, 1))
    assert log_rank(time, event, group).p == pytest.approx(stats.logrank(first, second).pvalue, rel=1e-9)


def test_stratification_removes_a_confounder():
    rng = np.random.default_rng(2)
    stratum = np.repeat([0, 1], 200)
    group = (rng.random(400) < np.where(stratum == 0, 0.2, 0.8)).astype(
        int
    )  # group 1 sits mostly in the deadly stratum
    life = rng.exponential(np.where(stratum == 0, 300, 50))
    event, time = life < 200, np.minimum(life, 200)
    assert log_rank(time, event, group).p < 1e-6
    assert log_rank(time, event, group, stratum).p > 0.01


def test_nothing_to_compare():
    assert np.isnan(log_rank([1, 2], [False, False], ["a", "b"]).p)
    assert np.isnan(log_rank([1, 2], [True, True], ["a", "a"]).p)


@pytest.mark.parametrize("runs", range(2, 41, 2))
def test_the_median_is_where_exactly_half_are_left_whatever_rounding_does(runs):
    time = np.arange(1.0, runs + 1)
    for censored in (0, 1, 2, 5):  # those that leave first change the risk sets, and with them the rounding
        early = np.full(censored, 0.5)
        event = np.r_[np.zeros(censored, dtype=bool), time <= runs / 2]
        assert median_survival(kaplan_meier(np.r_[early, time], event)) == runs / 2


def test_a_run_that_was_never_seen_is_refused():
    with pytest.raises(ValueError, match="1 of 3 times are NaN"):
        kaplan_meier([1, np.nan, 2], [True, False, True])
    with pytest.raises(ValueError, match="1 of 2 times are NaN"):
        log_rank([1, np.nan], [True, True], ["a", "b"])


def test_smallest_p_of_an_exact_log_rank_test():
    assert least_p([*"aab"], [0, 0, 0]) == pytest.approx(1 / 3)
    assert least_p([*"aabb"], [0, 0, 0, 0]) == pytest.approx(2 / 6)  # exchanging a and b changes nothing
    assert least_p([*"abab"], [0, 0, 1, 1]) == pytest.approx(2 / 4)
    assert least_p([*"abbaab"], [0, 0, 0, 1, 1, 1]) == pytest.approx(1 / 9)
    assert least_p([*"aaa"], [0, 0, 0]) == 1


def test_smallest_p_is_that_of_the_most_extreme_dealing():
    time, event = np.arange(1.0, 7), np.ones(6, dtype=bool)
    dealings = [np.isin(np.arange(6), chosen) for chosen in combinations(range(6), 3)]
    chi2 = np.array([log_rank(time, event, one).chi2 for one in dealings])
    share = np.mean(chi2 >= chi2.max() - 1e-9)
    assert share == pytest.approx(least_p(dealings[0], np.zeros(6)))
