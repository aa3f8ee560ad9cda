import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.commands.compare import analyze_compare
from vcpo_bench.analysis.comparison.normalized_rewards import normalize
from vcpo_bench.analysis.comparison.time_to_target import target_table, target_times
from vcpo_bench.analysis.results import load


@pytest.fixture
def results(tmp_path, make_results):
    return load(
        make_results(
            tmp_path, methods=("vcpo", "tis"), lags=(16,), steps=400, shapes={"tis": "collapsed"}, seeds=range(6)
        )
    )


def test_the_second_of_two_good_evaluations_counts(results):
    rewards = normalize(results)
    times = target_times(results, rewards)
    row = times[times["reached"] & (times["target"] == 0.75)].iloc[0]
    anchor = rewards.anchors.iloc[0]
    evals = results.evals[results.evals["key"] == row["key"]]
    reward = (evals["sampled_reward"].to_numpy() - anchor["start"]) / (anchor["sync"] - anchor["start"])
    means = (reward[1:] + reward[:-1]) / 2
    first = int(np.flatnonzero(means >= 0.75)[0]) + 1
    assert row["updates"] == evals["step"].iloc[first]
    steps = results.steps[results.steps["key"] == row["key"]]
    clock = steps[["seconds_sample", "seconds_score", "seconds_update", "seconds_record"]].to_numpy()
    assert row["seconds"] == pytest.approx(clock[: row["updates"]].sum())


@pytest.mark.parametrize(("regime", "waited"), [("async", 5.0), ("async(clock=virtual)", 0.0)])
def test_waiting_counts_where_the_clock_is_real(results, regime, waited):
    before = target_times(results, normalize(results))["seconds"]
    results.steps["seconds_wait"] = 5.0
    results.cells["regime"] = regime
    after = target_times(results, normalize(results))
    assert len(before)
    np.testing.assert_allclose(after["seconds"], before + waited * after["updates"])


def test_unreached_is_the_whole_budget_even_after_a_collapse(results):
    times = target_times(results, normalize(results))
    missed = times[~times["reached"]]
    assert len(missed)
    assert missed["updates"].eq(400).all()


def test_a_cell_that_ended_in_an_error_is_left_out(results):
    before = target_times(results, normalize(results))
    lost = results.cells["key"][results.cells["method"] == "vcpo"].iloc[0]
    results.cells.loc[results.cells["key"] == lost, "status"] = "error"
    after = target_times(results, normalize(results))
    assert set(before["key"]) - set(after["key"]) == {lost}


def test_table_censors_what_was_not_reached(results):
    rewards = normalize(results)
    runs = rewards.table[rewards.table["staleness"] == 16]
    table = target_table(target_times(results, rewards), runs).set_index(["method", "target"])
    assert table.loc[("vcpo", 0.5), "reached"] == 6
    assert table.loc[("vcpo", 0.5), "median_updates"] < 150
    assert table.loc[("tis", 0.9), "reached"] == 0
    assert table.loc[("tis", 0.9), "median_updates"] == np.inf
    assert table.loc[("tis", 0.9), "mean_updates"] == 400
    assert (table["mean_updates_low"] <= table["mean_updates"]).all()
    assert table.loc[("vcpo", 0.5), "median_updates"] <= table.loc[("vcpo", 0.9), "median_updates"]


def test_without_anchors_there_are_no_targets(tmp_path, make_results):
    results = load(make_results(tmp_path, steps=60, controls=False))
    rewards = normalize(results)
    times = target_times(results, rewards)
    assert times.empty
    assert target_table(times, rewards.table).empty
    assert isinstance(times, pd.DataFrame)


def test_a_run_that_never_gets_there_slows_the_median_however_soon_it_ended():
    """Four of ten reach the target after 10 s; six end early, after 5 s: fewer than half ever reach it."""
    reached = np.arange(10) < 4
    times = pd.DataFrame({"key": [str(n) for n in range(10)], "target": 0.5, "reached": reached, "budget": 300})
    times["updates"] = np.where(reached, 100, 300)
    times["seconds"] = np.where(reached, 10.0, 5.0)
    runs = pd.DataFrame({"key": times["key"], "method": "vcpo", "staleness": 16})
    assert target_table(times, runs)["median_seconds"].item() == np.inf
    times.loc[4, ["reached", "updates", "seconds"]] = (True, 200, 20.0)
    assert target_table(times, runs)[["median_updates", "median_seconds"]].iloc[0].tolist() == [200, 20]


def test_seconds_of_a_run_whose_steps_cannot_be_read_are_not_zero(results):
    key = results.cells.loc[results.cells["method"] == "vcpo", "key"].iloc[0]
    results.__dict__["steps"] = results.steps[results.steps["key"] != key]
    rewards = normalize(results)
    times = target_times(results, rewards)
    assert times.loc[times["key"] == key, "seconds"].isna().all()
    table = target_table(times, rewards.table[rewards.table["staleness"] == 16]).set_index(["method", "target"])
    assert table.loc[("vcpo", 0.5), "median_seconds"] > 1


def test_a_reward_exactly_on_the_target_reaches_it(results):
    rewards = normalize(results)
    rewards.anchors[["start", "sync"]] = 0.1, 0.4
    assert (0.25 - 0.1) / (0.4 - 0.1) < 0.5
    results.__dict__["evals"] = results.evals.assign(sampled_reward=0.25)
    times = target_times(results, rewards)
    assert times.loc[times["target"] == 0.5, "reached"].all()


def test_runs_without_recorded_seconds_have_none(results):
    """As in archives of runs, which leave measured seconds out."""
    for name in [name for name in results.steps if name.startswith("seconds_")]:
        results.steps[name] = np.nan
    findings = analyze_compare(results)
    assert findings.tables["targets"]["median_updates"].lt(np.inf).any()
    assert findings.tables["targets"]["median_seconds"].isna().all()
    assert findings.tables["speedup"]["updates_ratio"].notna().all()
    assert findings.tables["speedup"][["seconds", "seconds_ratio"]].isna().all(axis=None)
    texts = [statement.text for statement in findings.statements]
    assert any("times as soon in updates as synchronous training." in text for text in texts)
    assert not any("nan" in text.split() for text in texts)
