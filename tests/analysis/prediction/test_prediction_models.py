from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.added_value_of_ess import BEST, difference, held_out_odds, increment_table
from vcpo_bench.analysis.prediction.covariates import (
    FATE,
    circumstances,
    configuration_risk,
    features,
    normal_scores,
)
from vcpo_bench.analysis.prediction.hazard import hazard_table
from vcpo_bench.analysis.prediction.landmarks import compare, draws_of, risk_sets
from vcpo_bench.analysis.prediction.logistic import clustered_errors, fit, wald_p
from vcpo_bench.analysis.prediction.null_models import KINDS, nulls_table
from vcpo_bench.analysis.prediction.panel import CONFIGURATION, Panel, build_panel
from vcpo_bench.analysis.prediction.precision_recall import landmarks
from vcpo_bench.analysis.prediction.risk_models import HORIZON, horizon_tables
from vcpo_bench.analysis.prediction.thresholds import folds

SIGNALS = all_signals()

FEW = {name: SIGNALS[name] for name in ("ess", "kl", "step", "lr")}


def sample(rows: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, 3))
    return table, rng.random(rows) < 1 / (1 + np.exp(-(table @ [1.0, -0.5, 0.0] - 1)))


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
def test_newton_finds_what_a_general_optimizer_finds(ridge: float) -> None:
    table, label = sample()

    def objective(beta: np.ndarray) -> float:
        odds = beta[0] + table @ beta[1:]
        return float(np.logaddexp(0, odds).sum() - (label * odds).sum() + 0.5 * ridge * (beta[1:] ** 2).sum())

    expected = optimize.minimize(objective, np.zeros(4), tol=1e-10).x
    np.testing.assert_allclose(fit(table, label, ridge).coefficients, expected, atol=1e-4)


def test_a_perfect_separation_stays_finite() -> None:
    table = np.linspace(-1, 1, 50)[:, None]
    model = fit(table, table[:, 0] > 0)
    assert np.isfinite(model.coefficients).all()
    assert model.probability(table)[-1] > 0.9


def test_a_run_written_down_twice_is_still_one_run() -> None:
    table, label = sample()
    run = np.arange(400)
    twice = np.repeat(np.arange(400), 2)
    once = clustered_errors(fit(table, label, 0.0), table, label, run)
    double = clustered_errors(fit(table[twice], label[twice], 0.0), table[twice], label[twice], run[twice])
    np.testing.assert_allclose(np.sqrt(np.diag(double)), np.sqrt(np.diag(once)), rtol=0.02)
    naive = clustered_errors(fit(table[twice], label[twice], 0.0), table[twice], label[twice], np.arange(800))
    assert np.sqrt(naive[1, 1] / once[1, 1]) == pytest.approx(1 / np.sqrt(2), rel=0.02)


def test_normal_scores_keep_the_order_and_only_that() -> None:
    values = np.random.default_rng(1).normal(size=500)
    scores = normal_scores(values)
    np.testing.assert_allclose(scores(values), normal_scores(np.exp(values))(np.exp(values)))
    assert stats.kstest(scores(values), "norm").pvalue > 0.9
    assert (np.diff(scores(np.sort(values))) > 0).all()
    assert scores(np.array([np.nan]))[0] == 0
    assert np.isfinite(scores(np.array([-1e9, 1e9]))).all()
    assert (normal_scores(np.array([np.nan]))(values) == 0).all()


@pytest.fixture(scope="module")
def panel(make_study, truths) -> Panel:
    study = {"ess_ratio": truths["leads"], "kl_mu_theta_k3": truths["marker"]}
    return build_panel(make_study(study, seeds=6), FEW)


def test_features_learn_from_training_rows_only(panel: Panel) -> None:
    rows = landmarks(panel, 20, guard=0)
    train = folds(panel, "seed")[0].train[rows.run]
    before = features(panel, rows, ["ess"], train)
    values = panel.values["ess"].copy()
    values[np.unique(rows.run[~train])] += 100
    after = features(replace(panel, values={**panel.values, "ess": values}), rows, ["ess"], train)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(before[train], after[train])
    known = circumstances(panel, rows, train)
    assert known.shape == (rows.run.size, 4)  # one task: step, its square, lag, rate
    np.testing.assert_allclose(known[train].mean(axis=0), 0, atol=1e-9)
    assert features(panel, rows, ["step", "lr"], train).shape == known.shape


def test_the_fate_of_a_configuration_never_counts_the_run_itself(panel: Panel) -> None:
    fold = folds(panel, "seed")[0]
    risk = configuration_risk(panel, fold.train)
    group, overall = panel.strata(CONFIGURATION), panel.failed[fold.train].mean()
    for i in (0, 5, int(np.flatnonzero(panel.failed)[0])):
        others = (group == group[i]) & fold.train
        others[i] = False
        share = (panel.failed[others].sum() + overall) / (others.sum() + 1)
        assert risk[i] == pytest.approx(np.log(share / (1 - share)))
    rows = landmarks(panel, 20, guard=0)
    table = features(panel, rows, [FATE], fold.train[rows.run])
    np.testing.assert_allclose(table[:, -1], risk[rows.run])


def test_odds_of_a_run_come_from_models_that_never_saw_it(panel: Panel) -> None:
    parts = folds(panel, "seed")
    whole = held_out_odds(panel, [["ess"]] * len(parts), 20, parts)
    alone = held_out_odds(panel, [["ess"]], 20, parts[:1])
    np.testing.assert_array_equal(whole[parts[0].test], alone[parts[0].test])
    assert np.isnan(alone[~parts[0].test]).all()
    assert np.isfinite(whole[:, 9]).any()  # known after 10 updates, 20 before the evaluation at 30
    assert np.isnan(whole[:, 4]).all()


def test_a_signal_adds_nothing_to_itself(panel: Panel) -> None:
    one = compare(panel.scores("ess"), risk_sets(panel, 20))
    draws = draws_of(len(panel.runs), 100)
    row = difference(one, one, panel, draws)
    assert (row["value"], row["low"], row["high"], row["p"]) == (0.0, 0.0, 0.0, 1.0)
    other = difference(one, compare(panel.scores("kl"), risk_sets(panel, 20)), panel, draws)
    back = difference(compare(panel.scores("kl"), risk_sets(panel, 20)), one, panel, draws)
    assert other["value"] == pytest.approx(-back["value"])


def test_the_best_baseline_is_chosen_and_all_comparisons_are_there(panel: Panel) -> None:
    table = increment_table(panel)
    here = table[(table["lead"] == 20) & (table["comparison"] == BEST)].iloc[0]
    assert here["baseline"] == "kl"  # a marker of the doomed beats noise in every fold
    assert set(table["lead"]) == {5, 10, 20, 50, 100}
    early = table[(table["lead"] == 100) & (table["comparison"] == "ESS alone against kl")].iloc[0]
    assert early["verdict"] == "less"  # 100 updates before, only the marker knows


def test_nulls_are_centered_where_they_should_be(panel: Panel) -> None:
    table = nulls_table(panel).set_index(["signal", "null"])
    assert set(table.index.get_level_values("null")) == set(KINDS)
    for signal in ("ess", "kl"):
        assert table.loc[(signal, "permuted within lag"), "null_mean"] == pytest.approx(0.5, abs=0.04)
        assert table.loc[(signal, "permuted within lag"), "p"] < 0.01
    assert table.loc[("ess", "shifted"), "null_mean"] < 0.7  # its history is noise
    marker = table.loc[("kl", "shifted")]
    assert marker["null_low"] <= marker["value"] <= marker["null_high"]  # its history is as good
    assert table.loc[("step", "permuted within lag"), "value"] == 0.5


def test_a_hazard_ratio_is_found_again(make_study, truths) -> None:
    """Runs whose marker is one unit up are lost three times as often per update: log ratio log 3 per unit."""
    rng = np.random.default_rng(0)
    runs, length = 300, 301
    mark = rng.normal(size=runs)
    hazard = 0.01 * np.exp(mark * np.log(3.0))
    when = np.where(rng.random((runs, 30)) < hazard[:, None], np.arange(1, 31) * 10.0, np.inf).min(axis=1)
    table = pd.DataFrame({"key": np.arange(runs).astype(str), "task": "chain", "regime": "fifo"})
    table["method"] = [f"m{run // 6}" for run in range(runs)]
    table = table.assign(staleness=1, lr=1e-3, seed=np.arange(runs) % 6, failed=np.isfinite(when), steps_done=300)
    table["event"] = np.where(table["failed"], "collapse", "healthy")
    values = {"ess": np.repeat(mark[:, None], length, axis=1), "kl": rng.normal(size=(runs, length))}
    panel = Panel(table, values, when, when.copy(), np.full(runs, 300.0), 10)
    found = hazard_table(panel).set_index("signal")
    assert found.loc["ess", "low"] < 3.0 < found.loc["ess", "high"]
    assert found.loc["ess", "p_proportional"] > 0.05
    assert found.loc["kl", "low"] < 1 < found.loc["kl", "high"]
    models, landmark_areas, calibration = horizon_tables(panel)
    knowing = models.set_index("model").loc["circumstances + ESS"]
    assert knowing["skill_low"] > 0
    assert 0.7 < knowing["slope"] < 1.4
    assert knowing["c_index_low"] > 0.65
    assert set(landmark_areas["landmark"]) == set(range(25, 251, 25)) | {275}
    shares = calibration[calibration["model"] == "circumstances + ESS"]
    assert ((shares["low"] <= shares["predicted"]) & (shares["predicted"] <= shares["high"])).mean() >= 0.7
    expected = 1 - np.exp(-hazard * HORIZON / 10)
    assert shares["predicted"].max() == pytest.approx(np.sort(expected)[-30:].mean(), abs=0.25)


def test_wald() -> None:
    assert wald_p(1.96, 1.0) == pytest.approx(0.05, abs=1e-3)
    assert wald_p(0.0, 0.0) == 1.0
