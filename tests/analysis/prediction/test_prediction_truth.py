"""Synthetic studies with known truth: each signal must be recognized for what it is, by the tool's own verdict."""

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.commands.prediction import Prediction
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.auroc import (
    BETTER,
    NOTHING,
    SAME_CONFIGURATION,
    SAME_METHOD,
    SAME_PLACE,
    WORSE,
    auroc_table,
    matching_table,
)
from vcpo_bench.analysis.prediction.overview import runs_table
from vcpo_bench.analysis.prediction.panel import Panel, build_panel
from vcpo_bench.analysis.prediction.sentences import failing_methods
from vcpo_bench.analysis.results import load

SIGNALS = all_signals()

FEW = {name: SIGNALS[name] for name in ("ess", "kl", "step")}


def panel_of(make_study, truths, truth: str, seed: int = 0) -> Panel:
    return build_panel(make_study({"ess_ratio": truths[truth], "kl_mu_theta_k3": truths["nothing"]}, seed=seed), FEW)


def verdicts_on_ess(panel: Panel) -> dict[int, str]:
    """What is said of ESS, by lead."""
    table = auroc_table([panel])
    return table[table["signal"] == "ess"].set_index("lead")["verdict"].to_dict()


@pytest.mark.parametrize(
    ("truth", "known"),
    [("leads", {5, 10, 20}), ("clock", set()), ("lag", set()), ("nothing", set()), ("marker", {5, 10, 20, 50, 100})],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_signal_is_recognized_for_what_it_is(make_study, truths, truth: str, known: set[int], seed: int) -> None:
    """It warns from where it rises; a clock, and what only knows the lag, are no better than chance."""
    found = verdicts_on_ess(panel_of(make_study, truths, truth, seed))
    assert {lead for lead, verdict in found.items() if verdict == BETTER} >= known
    if not known or truth == "leads":
        assert found[50] == found[100] == NOTHING
        assert known or found[20] == NOTHING


def test_a_signal_that_points_the_other_way_is_not_turned_round(make_study, truths) -> None:
    results = make_study({"ess_ratio": lambda *known: -truths["leads"](*known)})
    assert verdicts_on_ess(build_panel(results, FEW))[20] == WORSE


def test_a_mark_of_the_method_does_not_tell_seeds_of_one_configuration_apart(make_study) -> None:
    results = make_study({"ess_ratio": lambda t, onset, lag, rng: np.zeros(t.shape)}, rates=(1e-4, 2e-4, 3e-4, 4e-4))
    wild = results.cells["method"] == "wild"
    lost = results.evals.groupby("key")["sampled_reward"].min() < 0.2
    doomed = set(results.cells.loc[wild, "key"]) & set(lost[lost].index)
    steps = results.steps  # let only the wild be lost, and ESS be low wherever the method is wild
    low = steps["key"].isin(set(results.cells.loc[wild, "key"]))
    steps["ess_ratio"] = steps["ess_ratio"] * np.where(low, np.exp(-3.0), 1.0)
    spared = ~results.evals["key"].isin(doomed)
    results.evals["sampled_reward"] = results.evals["sampled_reward"].mask(spared, 0.6)
    table = matching_table(build_panel(results, FEW))
    found = table[table["signal"] == "ess"].set_index("match")["verdict"]
    assert found[SAME_PLACE] == BETTER
    assert found[SAME_METHOD] == found[SAME_CONFIGURATION] == NOTHING
    started = Findings({"runs": runs_table(results)}, {"runs": agreeing(results.cells, "method")})
    assert any("of the collapses occur under wild" in one.text for one in failing_methods(started))


@pytest.fixture(scope="module")
def everything(make_study, truths):
    study = {"ess_ratio": truths["leads"], "kl_mu_theta_k3": truths["leads"], "entropy": truths["nothing"]}
    results = make_study(study)
    return results, Prediction(least_lag=0).run(results)


def table_row(table: pd.DataFrame, **where: object) -> dict[str, object]:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0].to_dict()


def test_alarms_of_a_leading_signal_come_in_time_on_held_out_seeds(everything) -> None:
    _, findings = everything
    row = table_row(findings.tables["alarms"], signal="ess")
    assert row["recall"] > 0.8
    assert 15 <= row["lead_median"] <= 27
    assert row["healthy_alarmed_low"] < 0.1  # the operating point held
    assert table_row(findings.tables["alarms"], signal="step")["recall"] == 0
    assert table_row(findings.tables["alarms"], signal="entropy_low")["recall"] < 0.3


def test_everything_is_said_and_said_again_in_the_same_words(everything) -> None:
    results, findings = everything
    again = Prediction(least_lag=0).run(results)
    assert again.statements == findings.statements
    for name, table in findings.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])
    said = "\n".join(one.text for one in findings.statements)
    for part in ("Primary endpoint", "AUROC of other signals", "differ in their seed only", "ESS alarms"):
        assert part in said


def test_too_few_runs_give_no_number(make_study, truths) -> None:
    results = make_study({"ess_ratio": truths["leads"]}, seeds=2)
    findings = Prediction(least_lag=0).run(results)
    for name, column in (("auroc", "value"), ("matching", "value"), ("alarms", "recall")):
        table = findings.tables[name]
        assert (table["verdict"] == "too few").all()
        assert table[column].isna().all()
    assert any(
        "Primary endpoint" in one.text and "too few runs or configurations" in one.text for one in findings.statements
    )


@pytest.mark.parametrize("shape", ["healthy", "collapsed", "error"])
def test_a_study_of_one_kind_of_end_says_so_and_gives_no_number(make_results, tmp_path, shape: str) -> None:
    make_results(tmp_path, methods=("vcpo",), lags=(16,), seeds=(0, 1), shapes=lambda *_: shape, controls=False)
    findings = Prediction(least_lag=0).run(load(tmp_path))
    if shape == "error":
        (only,) = findings.statements
        assert only.text.startswith("No run that recorded a signal could be judged by the collapse rule")
        assert findings.tables["runs"]["not_judged"].sum() == 2
        assert findings.tables["signals"].set_index("signal")["recorded"]["ess"], "recorded, though nothing was judged"
        return
    assert findings.tables["auroc"]["value"].isna().all()
    assert findings.tables["runs"][shape].sum() == 2
    assert "too few" in "\n".join(one.text for one in findings.statements)
