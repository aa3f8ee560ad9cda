"""Our statistics against numbers of arviz-stats, rliable, lifelines and statsmodels (see tests/integrations)."""

import json
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.collapse.survival import kaplan_meier, log_rank, median_survival, restricted_mean
from vcpo_bench.analysis.comparison.aggregates import aggregates, performance_profile, probability_of_improvement
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k
from vcpo_bench.analysis.intervals import holm, wilson

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "analysis_statistics.json").read_text())
GIVEN = GOLDEN["inputs"]


def strata(name):
    return list(np.array(GIVEN[name]).T)


@pytest.mark.parametrize("name", GIVEN["log_weights"])
def test_pareto_k(name):
    assert float(pareto_k(GIVEN["log_weights"][name])) == pytest.approx(GOLDEN["arviz_stats"][name], rel=1e-9)


@pytest.mark.parametrize("name", ["iqm", "median", "mean", "optimality_gap"])
def test_aggregates_and_their_intervals(name):
    estimate = aggregates(strata("scores"))[name]
    assert estimate.value == pytest.approx(GOLDEN["rliable"][name], rel=1e-12)
    assert list(estimate[1:]) == pytest.approx(GOLDEN["rliable"]["intervals"][name], abs=0.008)


def test_probability_of_improvement():
    estimate = probability_of_improvement(strata("scores"), strata("other_scores"))
    assert estimate.value == pytest.approx(GOLDEN["rliable"]["probability_of_improvement"], rel=1e-12)


def test_performance_profile():
    share, _, _ = performance_profile(strata("scores"), [0.0, 0.25, 0.5, 0.75, 1.0], replications=10)
    assert share.tolist() == pytest.approx(GOLDEN["rliable"]["profile"])


def test_kaplan_meier():
    golden = GOLDEN["lifelines"]
    curve = kaplan_meier(GIVEN["time"], GIVEN["event"])
    assert curve["time"].tolist() == golden["time"]
    assert curve["survival"].to_numpy() == pytest.approx(golden["survival"], rel=1e-12)
    assert curve[["low", "high"]].to_numpy() == pytest.approx(np.array(golden["interval"]), rel=1e-9)
    half = curve[curve["time"] == 120]
    assert (half["at_risk"] - half["events"]).item() * 2 == len(GIVEN["time"])  # exactly half of 60 are left at 120
    assert median_survival(curve) == 120 < golden["median"]  # lifelines: the next time, by a product of 0.5 + 1e-16


def test_restricted_mean():
    golden = GOLDEN["lifelines"]
    mean, low, high = restricted_mean(kaplan_meier(GIVEN["time"], GIVEN["event"]), 250)
    assert mean == pytest.approx(golden["restricted_mean_250"], rel=1e-12)
    # lifelines gives the variance of the lifetimes, ours is an interval of their mean: narrower by about sqrt(n)
    assert low < mean < high < mean + 2 * np.sqrt(golden["restricted_variance_250"])


def test_log_rank_plain_and_stratified():
    plain = log_rank(GIVEN["time"], GIVEN["event"], GIVEN["group"])
    assert [plain.chi2, plain.p] == pytest.approx(GOLDEN["lifelines"]["log_rank"], rel=1e-9)
    layered = log_rank(GIVEN["time"], GIVEN["event"], GIVEN["group"], GIVEN["stratum"])
    assert [layered.chi2, layered.p] == pytest.approx(GOLDEN["statsmodels"]["stratified_log_rank"], rel=1e-9)
    assert layered.degrees == 2


def test_holm_and_wilson():
    assert holm(GIVEN["p_values"]) == pytest.approx(GOLDEN["statsmodels"]["holm"])
    for (count, total), interval in zip(GIVEN["shares"], GOLDEN["statsmodels"]["wilson"], strict=True):
        assert wilson(count, total) == pytest.approx(interval, abs=1e-12)
