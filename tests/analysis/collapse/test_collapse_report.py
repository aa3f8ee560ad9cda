"""What the analysis of collapses says, and the lag realized where a failure began."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.collapse.rule import KINDS, events, lag_at_onset
from vcpo_bench.analysis.collapse.tables import failure_rates, failure_rates_by_lag, log_rank_table, survival_table
from vcpo_bench.analysis.commands.collapse import Collapse
from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.results import Results, load


@pytest.fixture
def verdicts(tmp_path, make_results):
    shapes = {"vcpo": "healthy", "tis": "collapsed", "mis": "nan", "clip": "error"}
    return events(
        load(make_results(tmp_path, methods=tuple(shapes), lags=(1, 16), steps=200, shapes=shapes, seeds=range(6)))
    )


def test_rates_count_what_the_rule_applies_to(verdicts):
    table = failure_rates(verdicts).set_index(["method", "staleness"])
    assert table.loc[("tis", 16), ["collapsed", "judged", "rate"]].tolist() == [6, 6, 1]
    assert table.loc[("vcpo", 16), ["collapsed", "judged", "rate"]].tolist() == [0, 6, 0]
    assert table.loc[("vcpo", 16), "high"] == pytest.approx(wilson(0, 6)[1])
    assert table.loc[("clip", 1), "judged"] == 0
    assert table.loc[("mis", 1), "nan"] == 6
    assert table.loc[("mis", 1), "onset"] == 100
    assert (table[list(KINDS)].sum(axis=1) == 6).all()


def test_survival_falls_and_runs_that_are_not_judged_have_none(verdicts):
    curves = survival_table(verdicts)
    assert "clip" not in set(curves["method"])
    assert curves.groupby(["method", "staleness"])["survival"].is_monotonic_decreasing.all()


def test_log_rank_per_lag_and_over_all(verdicts):
    table = log_rank_table(verdicts).set_index("staleness")
    assert table.loc["16", "p"] < 0.01
    assert table.loc["all", "runs"] == table.loc[["1", "16"], "runs"].sum()
    assert table.loc["16", "methods"] == 4  # vcpo, tis, mis and the control


def test_findings_in_plain_words(tmp_path, make_results):
    findings = Collapse().run(load(make_results(tmp_path, steps=200, seeds=range(6))))
    text = " ".join(one.text for one in findings.statements)
    assert "Outcomes of 42 runs: 30 healthy, 12 collapse." in text
    assert "Lag 16, collapsed runs" in text
    assert "tis 6 of 6 [61%, 100%]" in text
    assert "27 variants of the collapse rule" in text
    assert set(findings.tables) == {
        "events",
        "rates",
        "rates_by_lag",
        "survival",
        "log_rank",
        "sensitivity",
    }


def test_when_nothing_fails_nothing_is_tested(tmp_path, make_results):
    findings = Collapse().run(load(make_results(tmp_path, methods=("vcpo",), lags=(1,), steps=100, controls=False)))
    assert any("cannot be compared" in one.text for one in findings.statements)


def test_stopped_runs_are_neither_failed_nor_dropped(verdicts):
    stopped = verdicts["method"].eq("vcpo") & verdicts["staleness"].eq(16) & verdicts["seed"].lt(2)
    cut = verdicts.assign(
        event=verdicts["event"].mask(stopped, "stopped"), last_step=verdicts["last_step"].mask(stopped, 60.0)
    )
    row = failure_rates(cut).set_index(["method", "staleness"]).loc[("vcpo", 16)]
    assert row[["stopped", "collapsed", "judged", "rate"]].tolist() == [2, 0, 4, 0]
    assert (row["low"], row["high"]) == pytest.approx((0, wilson(2, 6)[1]))
    by_lag = failure_rates_by_lag(cut).set_index(["method", "staleness"]).loc[("vcpo", 16)]
    assert by_lag[["collapsed", "runs", "stopped", "low"]].tolist() == [0, 6, 2, 0]
    assert by_lag["high"] == pytest.approx(wilson(2, 6)[1])
    curves = survival_table(cut)
    curve = curves[(curves["method"] == "vcpo") & (curves["staleness"] == 16)].set_index("time")
    assert curve.loc[60, "censored"] == 2
    assert curve["at_risk"].iloc[0] == 6


def test_with_fewer_than_six_runs_of_a_method_there_is_no_interval_and_no_test(tmp_path, make_results):
    found = Collapse().run(load(make_results(tmp_path, steps=200, seeds=range(5))))
    assert found.tables["rates_by_lag"][["low", "high"]].isna().all(axis=None)
    assert found.tables["rates"][["low", "high"]].isna().all(axis=None)
    by_lag = found.tables["log_rank"].set_index("staleness")["p"]
    assert by_lag[["1", "16"]].isna().all()
    text = " ".join(one.text for one in found.statements)
    assert "Lag 16, collapsed runs: " in text
    assert "Survival at lag 16 is not compared: a method has 5 runs, fewer than 6." in text


def test_the_last_update_before_the_onset_counts() -> None:
    steps = pd.DataFrame({"key": np.repeat(["early", "late", "well"], 40), "step": np.tile(np.arange(40), 3)})
    results = Results([Path("made")], pd.DataFrame({"key": ["early", "late", "well"]}))
    results.__dict__["steps"] = steps.assign(lag_mean=np.minimum(steps["step"], 16.0))
    onset = [10.0, 30.0, np.nan]
    verdicts = pd.DataFrame({"key": ["early", "late", "well"], "onset": onset, "collapsed": [True, True, False]})
    found = lag_at_onset(results, verdicts)
    assert found[["early", "late"]].tolist() == [9.0, 16.0]
    assert np.isnan(found["well"])


def test_an_onset_without_updates_before_it_has_no_lag() -> None:
    results = Results([Path("made")], pd.DataFrame({"key": ["a"]}))
    results.__dict__["steps"] = pd.DataFrame({"key": ["a"], "step": [0], "lag_mean": [0.0]})
    verdicts = pd.DataFrame({"key": ["a"], "onset": [0.0], "collapsed": [True]})
    assert lag_at_onset(results, verdicts).isna().all()
