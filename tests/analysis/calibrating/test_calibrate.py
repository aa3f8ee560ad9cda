"""Calibration: the promise holds for all detectors together on runs that did not tune them, and rates are honest."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foreign_runs import planted, rows_of, write_jsonl

from vcpo_bench.analysis.calibrating.judge import (
    ANY,
    DEALS,
    configuration_deals,
    configuration_folds,
    group_folds,
    judge,
    rates,
)
from vcpo_bench.analysis.calibrating.report import CalibrationReport, calibrate
from vcpo_bench.analysis.calibrating.runs import CalibrationRuns, runs_of_logs, runs_of_results
from vcpo_bench.analysis.calibrating.tune import TARGET, material, tune
from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.monitoring.calibration import load_calibrations, load_verdict_rates
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.monitor import Monitor
from vcpo_bench.analysis.prediction.clusters import clustered_ratio, clustered_share
from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import UsageError


@pytest.fixture(scope="module")
def study(make_study: Callable[..., Results], truths: dict[str, Callable[..., np.ndarray]]) -> CalibrationRuns:
    results = make_study({"ess_ratio": truths["leads"], "kl_mu_theta_k3": truths["nothing"]}, seeds=10)
    return runs_of_results(learning(results), "made up")


def learning(results: Results) -> Results:
    """The runs begin lower than they get, so that those which do not fall are healthy and no stalls."""
    results.steps["batch_reward"] = results.steps["sampled_reward"]
    results.evals.loc[results.evals["step"] == 0, "sampled_reward"] = 0.2
    return results


@pytest.fixture(scope="module")
def report(study: CalibrationRuns) -> CalibrationReport:
    return calibrate(study)


def test_runs_without_lag_are_no_healthy_runs(study: CalibrationRuns) -> None:
    assert set(study.panel.runs["staleness"][study.healthy]) == {16, 64}
    assert set(study.panel.runs["event"][study.healthy]) == {"healthy"}
    assert (study.panel.runs["staleness"][study.panel.failed] == 1).any()


def test_all_together_keep_the_promise_where_they_were_tuned(study: CalibrationRuns) -> None:
    given = material(study)
    everyone = np.ones(len(study.panel.runs), dtype=bool)
    chosen = tune(given, everyone)
    assert {one.signal for one in chosen} >= {"ess"}
    spoke = np.zeros(len(everyone), dtype=bool)
    for row in np.flatnonzero(study.healthy):
        spoke[row] = any(one.alarms(study.panel.values[one.signal][row]).any() for one in chosen)
    assert spoke[study.healthy].mean() <= TARGET
    each = [
        one.alarms(study.panel.values[one.signal][row]).any() for one in chosen for row in np.flatnonzero(study.healthy)
    ]
    assert any(each)  # not by silence


def test_a_part_never_speaks_more_often_than_all_together(report: CalibrationReport) -> None:
    parts = report.parts.set_index("signal")
    assert (parts["healthy_alarmed"] <= parts.loc[ANY, "healthy_alarmed"] + 1e-12).all()
    assert parts.loc[ANY, "healthy_alarmed"] < 2.5 * TARGET
    assert parts.loc["ess", "recall"] > 0.6
    assert 10 <= parts.loc["ess", "median_lead"] <= 30


def test_configurations_are_held_out_whole(study: CalibrationRuns) -> None:
    folds = configuration_folds(study)
    assert np.array(folds).sum(axis=0).tolist() == [1] * len(study.configuration)
    for test in folds:
        assert not set(study.configuration[test]) & set(study.configuration[~test])


def test_rates_are_means_over_ways_of_dealing(study: CalibrationRuns, report: CalibrationReport) -> None:
    assert any(
        (one != two).any() for one, two in zip(*(configuration_folds(study, deal) for deal in (0, 1)), strict=True)
    )
    deals, whole = report.deals, report.parts.set_index("signal").loc[ANY]
    assert deals["deal"].tolist() == list(range(DEALS))
    assert deals["healthy_alarmed"].nunique() > 1
    for name in ("healthy_alarmed", "recall", "false_per_1000"):
        np.testing.assert_allclose(whole[name], deals[name].mean())
    given = material(study)
    alone = rates(given, [judge(given, configuration_folds(study, 3))]).set_index("signal").loc[ANY]
    assert alone["healthy_alarmed"] == deals["healthy_alarmed"][3]
    assert deals["median_lead"].min() <= whole["median_lead"] <= deals["median_lead"].max()
    assert any(f"means of {DEALS} ways to deal" in one for one in report.sentences)
    assert calibrate(study, [Detector("ess", 5, 1.0)]).deals.empty


def test_a_signal_that_few_deals_chose_has_no_rate(study: CalibrationRuns) -> None:
    given = material(study)
    deals = [judge(given, configuration_folds(study, deal)) for deal in range(4)]
    number = rates(given, deals).set_index("signal")["n_healthy"]
    assert number[ANY] == number["ess"] == study.healthy.sum()
    for one in deals[1:]:
        del one.alarms["ess"], one.judged["ess"]
    number = rates(given, deals).set_index("signal")["n_healthy"]
    assert number[ANY] == study.healthy.sum()
    assert number["ess"] == 0


def test_deals_that_are_one_count_once(study: CalibrationRuns) -> None:
    few = replace(study, configuration=study.configuration % 4)
    assert list(configuration_deals(few)) == [0], "each of four configurations is a fold of its own, however dealt"
    assert len(configuration_deals(study)) > 1
    found = calibrate(few)
    assert found.deals["deal"].tolist() == [0]
    assert not any("ways to deal" in one for one in found.sentences)


def test_one_configuration_cannot_be_held_out(study: CalibrationRuns) -> None:
    alone = calibrate(replace(study, configuration=np.zeros_like(study.configuration)))
    assert alone.parts.empty
    assert alone.deals.empty
    assert not any("ways to deal" in one for one in alone.sentences)


def test_each_of_two_tasks_is_held_out_and_one_alone_is_not(study: CalibrationRuns) -> None:
    number = len(study.groups)
    two = replace(study, groups=np.array(["a", "b"])[np.arange(number) % 2])
    assert [set(two.groups[test]) for test in group_folds(two)] == [{"a"}, {"b"}]
    assert group_folds(replace(study, groups=np.full(number, "a"))) == []


def test_rates_say_whether_the_runs_had_tuned_the_detectors(study: CalibrationRuns, report: CalibrationReport) -> None:
    assert any(one.startswith(f"{ANY}, held-out configurations: ") for one in report.sentences)
    measured = calibrate(study, [Detector("ess", 5, 1.0)]).sentences
    assert any(one.startswith("ess, as they are: ") for one in measured)
    assert not any("held-out" in one for one in measured)


def test_seeds_of_one_configuration_would_promise_too_much(make_study: Callable[..., Results]) -> None:
    """Each configuration has its own level: who knows its other seeds knows the level; who does not errs more often."""
    results = learning(make_study({"ess_ratio": lambda t, onset, lag, rng: np.zeros(t.shape)}, seeds=10))
    here = runs_of_results(results, "levels")
    level = np.random.default_rng(1).normal(0, 3, here.configuration.max() + 1)[here.configuration]
    here.panel.values["ess"][:] = level[:, None]
    for name, values in here.panel.values.items():
        if name != "ess" and values.flags.writeable:  # a signal that nobody recorded says nothing already
            values[:] = np.nan
    given = material(here)
    seed = here.panel.runs["seed"].to_numpy()
    alike = rates(given, [judge(given, [seed % 5 == fold for fold in range(5)])]).set_index("signal")
    apart = rates(given, [judge(given, configuration_folds(here))]).set_index("signal")
    assert alike.loc[ANY, "healthy_alarmed"] <= TARGET
    assert apart.loc[ANY, "healthy_alarmed"] > TARGET


def test_the_file_holds_the_lengths_of_the_healthy_runs(make_study: Callable[..., Results]) -> None:
    results = learning(make_study({"ess_ratio": lambda t, onset, lag, rng: np.zeros(t.shape)}, seeds=10))
    bare = runs_of_results(results, "not recorded")
    assert bare.lengths is None
    healthy = results.steps["key"].isin(bare.panel.runs["key"][bare.healthy])
    results.steps["length_mean"] = np.where(healthy, 60.4 + results.steps["step"] % 2, 900.0)
    here = runs_of_results(results, "lengths")
    assert here.lengths == (60, 62)
    assert json.loads(calibrate(here, [Detector("ess", 5, 1.0)]).document)["lengths"] == [60, 62]


def test_the_file_is_read_by_the_monitor_and_says_where_it_holds(report: CalibrationReport, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(report.document)
    first = load_calibrations(path)[0]
    assert "measured on made up" in first.words
    assert "any of the" in first.words or len(load_calibrations(path)) == 1
    assert first.union is not None
    assert first.union.healthy_alarmed is not None
    reading = Monitor(path).step([0.0, 0.1])
    assert not reading.alarms
    whole = json.loads(report.document)
    assert whole["union"]["configurations"] <= 8
    rates = load_verdict_rates(path)
    assert (rates is None) == (whole["verdict"] is None)


def test_clusters_widen_an_interval_and_single_runs_do_not() -> None:
    success = np.repeat([True, False, False, False], 10)
    alone = clustered_share(success, np.arange(40))
    together = clustered_share(success, np.repeat(np.arange(4), 10))
    assert alone is not None
    assert together is not None
    np.testing.assert_allclose(alone[1:], wilson(10, 40), atol=0.01)
    assert together.high - together.low > 2 * (alone.high - alone.low)
    never = clustered_share(np.zeros(40, dtype=bool), np.repeat(np.arange(4), 10))
    assert never is not None
    np.testing.assert_allclose(never, (0.0, *wilson(0, 4)))
    assert clustered_share(success[:0], np.arange(0)) is None


def test_a_rate_per_thousand() -> None:
    above, below = np.array([1.0, 0.0, 2.0, 0.0]), np.full(4, 250.0)
    rate = clustered_ratio(above, below, np.arange(4), 1000.0)
    assert rate is not None
    assert rate.value == 3.0
    assert rate.low < 3.0 < rate.high
    silent = clustered_ratio(np.zeros(4), below, np.arange(4), 1000.0)
    assert silent is not None
    assert silent == (0.0, 0.0, 3.0)
    assert clustered_ratio(above, np.zeros(4), np.arange(4)) is None


def logs(folder: Path, causes: list[str], framework: str = "vcpo-fork") -> CalibrationRuns:
    runs = []
    for number, cause in enumerate(causes):
        rows = rows_of(planted(cause, seed=number), framework)
        runs.append(read_run(write_jsonl(folder / f"{number}.jsonl", rows)))
    return runs_of_logs(runs, "our runs")


def test_logs_of_another_trainer(tmp_path: Path) -> None:
    study = logs(tmp_path, ["healthy"] * 20 + ["lag and weights"] * 16)
    assert int(study.healthy.sum()) == 20
    assert int(study.panel.failed.sum()) == 16
    found = calibrate(study)
    (tmp_path / "ours.json").write_text(found.document)
    calibrations = load_calibrations(tmp_path / "ours.json")
    assert calibrations[0].union is not None
    assert calibrations[0].reward == "unit"
    rates = load_verdict_rates(tmp_path / "ours.json")
    assert rates is not None
    assert rates.found.value > 0.9
    assert rates.false.value == 0.0


def test_only_healthy_runs_still_give_thresholds(tmp_path: Path) -> None:
    found = calibrate(logs(tmp_path, ["healthy"] * 16))
    assert any("too few collapses (0)" in sentence for sentence in found.sentences)
    assert json.loads(found.document)["union"]["recall"] is None


def test_what_stands_for_a_quantity_is_remembered(tmp_path: Path) -> None:
    runs = []
    for seed in range(3):
        values = np.random.default_rng(seed).uniform(1, 2, 60)
        logged = [{"step": t, "critic/score/mean": 0.5, "rollout_corr/rollout_is_max": values[t]} for t in range(60)]
        for row in logged[5:]:
            row["critic/score/mean"] = 0.7
        runs.append(read_run(write_jsonl(tmp_path / f"{seed}.jsonl", logged)))
    study = runs_of_logs(runs, "ours")
    assert study.inputs["log_weight_max"] == "rollout_corr/rollout_is_max"


def test_without_a_healthy_run_nothing_is_calibrated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run counts as healthy"):
        calibrate(logs(tmp_path, ["lag and weights"] * 3))
