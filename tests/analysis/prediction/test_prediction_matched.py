"""Landmarks, risk sets and areas against slow obvious loops."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.collapse.rule import CollapseRule, events
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.auroc import (
    area_interval,
    area_p,
    auroc_row,
    auroc_table,
    hanley_mcneil,
    matching_table,
)
from vcpo_bench.analysis.prediction.landmarks import (
    GUARD,
    area_at,
    compare,
    compare_signal,
    draws_of,
    risk_sets,
)
from vcpo_bench.analysis.prediction.panel import MATCH, Panel, build_panel
from vcpo_bench.analysis.prediction.precision_recall import average_precision, landmarks, ranks_within
from vcpo_bench.analysis.prediction.sensitivity import definitions_table, placements_table, regimes_table
from vcpo_bench.analysis.prediction.stratified import StratifiedComparison, StratifiedDraws

SIGNALS = all_signals()

FEW = {name: SIGNALS[name] for name in ("ess", "step", "lag")}


def small_panel(runs: int = 40, seed: int = 0, ties: bool = False) -> Panel:
    """Random scores, lags and onsets; the third run was watched until update 120 only."""
    rng = np.random.default_rng(seed)
    onset = np.where(rng.random(runs) < 0.5, rng.integers(5, 18, runs) * 10.0, np.inf)
    onset[2] = np.inf
    end = np.full(runs, 200.0)
    end[2] = 120
    values = rng.integers(0, 4, (runs, 200)).astype(float) if ties else rng.normal(size=(runs, 200))
    values[3, :] = np.nan
    table = pd.DataFrame({"key": [f"run{i}" for i in range(runs)], "task": "chain", "method": "m", "regime": "fifo"})
    table = table.assign(staleness=rng.choice([1, 16], runs), lr=1e-3, seed=np.arange(runs) % 4)
    table = table.assign(event=np.where(np.isfinite(onset), "collapse", "healthy"), failed=np.isfinite(onset))
    return Panel(table.assign(steps_done=200), {"ess": values}, onset, onset.copy(), end, 10)


@pytest.mark.parametrize("lead", [5, 20, 100, -10])
@pytest.mark.parametrize("ties", [False, True])
def test_the_area_is_the_mean_placement_among_matched_controls(lead: int, ties: bool) -> None:
    panel = small_panel(ties=ties)
    scores, lag = panel.values["ess"], panel.runs["staleness"].to_numpy()
    placements = []
    for i in np.flatnonzero(panel.failed):
        landmark = int(panel.found[i]) - lead  # updates applied and known
        if not 1 <= landmark <= 200 or np.isnan(scores[i, landmark - 1]):
            continue
        wins = []
        for j in range(len(lag)):
            watched = panel.end[j] >= max(panel.found[i], landmark) and panel.found[j] > panel.found[i] + GUARD
            if lag[j] == lag[i] and watched and np.isfinite(scores[j, landmark - 1]):
                mine, other = scores[i, landmark - 1], scores[j, landmark - 1]
                wins.append(float(mine > other) + 0.5 * float(mine == other))
        if wins:
            placements.append(np.mean(wins))
    sets = risk_sets(panel, lead)
    one = compare(scores, sets)
    assert one.auroc() == pytest.approx(np.mean(placements))
    assert area_at(scores[:, sets.row].T, sets) == pytest.approx(one.auroc())
    assert one.replicates(np.ones((1, len(lag))))[0] == pytest.approx(one.auroc())


def test_a_bootstrap_replicate_is_the_area_of_the_runs_it_drew() -> None:
    panel = small_panel()
    one = compare(panel.values["ess"], risk_sets(panel, 20))
    draws = draws_of(len(panel.runs), 3, seed=1)
    for drawn, area in zip(draws, one.replicates(draws), strict=True):
        total = weight = 0.0
        for row, case in enumerate(one.case):
            controls = drawn * one.usable[row]
            if controls.sum() > 0:
                total += drawn[case] * (controls * one.wins[row]).sum() / controls.sum()
                weight += drawn[case]
        assert area == pytest.approx(total / weight)
    np.testing.assert_array_equal(draws.sum(axis=1), len(panel.runs))


def test_nothing_after_the_landmark_and_no_run_already_lost_is_looked_at() -> None:
    panel = small_panel()
    sets = risk_sets(panel, 20)
    changed = panel.values["ess"].copy()
    for case, row in zip(sets.case, sets.row, strict=True):
        changed[case, row + 1 :] = 1e9  # its own future
    assert compare(changed, sets).case.size == compare(panel.values["ess"], sets).case.size
    own = changed[sets.case, sets.row]
    np.testing.assert_array_equal(own, panel.values["ess"][sets.case, sets.row])
    for row, case in enumerate(sets.case):
        controls = sets.controls[row]
        assert (panel.found[controls] > panel.found[case] + GUARD).all()
        assert (panel.end[controls] >= panel.found[case]).all()
        assert not controls[case]
    np.testing.assert_array_equal(sets.row, panel.found[sets.case] - 20 - 1)


def test_step_and_lag_alone_score_one_half_by_construction(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["leads"]}), FEW)
    table = auroc_table(panel)
    assert (table.loc[table["signal"].isin(["step", "lag"]), "value"] == 0.5).all()
    looser = matching_table(panel).set_index(["signal", "match"])
    assert looser.loc[("lag", "step"), "low"] > 0.5  # longer lags are lost more often
    assert looser.loc[("step", "step"), "value"] == 0.5
    assert looser.loc[("step", "lag"), "verdict"] != "cannot be told from chance"


def test_p_values_of_noise_are_spread_as_they_should_be(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["nothing"]}, seeds=6), FEW)
    sets, draws = risk_sets(panel, 20), draws_of(len(panel.runs), 200)
    rng = np.random.default_rng(0)
    rows = [
        auroc_row(compare(rng.normal(size=(len(panel.runs), panel.length)), sets), panel, draws) for _ in range(100)
    ]
    assert np.mean([row["p"] < 0.05 for row in rows]) <= 0.12
    assert np.mean([row["low"] <= 0.5 <= row["high"] for row in rows]) >= 0.88


def test_a_perfect_area_has_an_interval_all_the_same() -> None:
    low, high = area_interval(1.0, np.ones(50), 15)
    assert (round(low, 2), high) == (0.8, 1.0)
    assert area_interval(0.7, np.linspace(0.5, 0.9, 1001), 15) == pytest.approx((0.51, 0.89))
    assert 0 < area_p(1.0, np.ones(50), 15) < 1e-10
    assert area_p(0.5, np.full(50, 0.5), 15) == 1.0


def test_half_widths_of_hanley_and_mcneil_as_published() -> None:
    widths = [round(hanley_mcneil(0.8, n, n), 2) for n in (5, 15, 30, 60)]
    assert widths == [0.29, 0.16, 0.11, 0.08]


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_against_a_loop(ties: bool) -> None:
    rng = np.random.default_rng(3)
    score = rng.integers(0, 6, 80).astype(float) if ties else rng.normal(size=80)
    label, run = rng.random(80) < 0.2, rng.integers(0, 10, 80)
    draws = draws_of(10, 45, seed=2)  # more than are in memory together
    for drawn, area in zip(draws, average_precision(score, label, run, draws), strict=True):
        weight, expected, before = drawn[run], 0.0, 0.0
        for threshold in np.unique(score)[::-1]:
            above = score >= threshold
            recall = (weight * label)[above].sum() / (weight * label).sum()
            if weight[above].sum():
                expected += (recall - before) * (weight * label)[above].sum() / weight[above].sum()
            before = recall
        assert area == pytest.approx(expected)


def test_ranks_within_groups_against_a_loop() -> None:
    rng = np.random.default_rng(4)
    values, group = rng.integers(0, 5, 60).astype(float), rng.integers(0, 4, 60)
    for i, rank in enumerate(ranks_within(values, group)):
        alike = values[group == group[i]]
        assert rank == pytest.approx(((alike < values[i]) + 0.5 * (alike == values[i])).mean())


def test_landmarks_leave_each_run_out_once_it_is_lost() -> None:
    panel = small_panel()
    rows = landmarks(panel, 20)
    assert rows.positive.sum() == (panel.failed & (panel.found > 20)).sum()
    assert (panel.found[rows.run] >= rows.found).all()
    assert (panel.end[rows.run] >= rows.found).all()
    assert (rows.row == rows.found - 21).all()
    gap = panel.found[rows.run] - rows.found
    assert ((gap == 0) | (gap > GUARD)).all()
    assert len(landmarks(panel, 20, guard=0).run) > len(rows.run)


def test_an_uninformative_score_has_the_area_of_the_prevalence(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["leads"]}), FEW)
    table = auroc_table(panel, leads=(20,)).set_index("signal")
    assert table.loc["step", "auprc"] == pytest.approx(table.loc["step", "prevalence"])
    assert table.loc["ess", "auprc_low"] > 5 * table.loc["ess", "prevalence"]


@pytest.mark.parametrize("window", [1, 5, 20])
def test_scores_are_those_of_the_detector_bit_for_bit(window: int) -> None:
    values = np.random.default_rng(5).normal(size=(3, 90))
    values[1, ::7] = np.nan
    values[2, :30] = np.nan
    for row, scores in zip(values, streamed_mean(values, window), strict=True):
        np.testing.assert_array_equal(scores, Detector("ess", window, 0.0).scores(row))


def test_some_scores_are_those_of_all_bit_for_bit() -> None:
    panel = small_panel()
    values = np.random.default_rng(6).normal(size=(len(panel.runs), panel.length))
    values[:, ::7], values[1, 40:60], values[2, 50] = np.nan, np.nan, np.inf
    panel = replace(panel, values={"ess": values})
    run, row = np.indices(values.shape)
    np.testing.assert_array_equal(panel.scores_of("ess", run, row), panel.scores("ess"))
    np.testing.assert_array_equal(
        panel.scores_at("ess", np.array([3, 3, 0, 51])), panel.scores("ess")[:, [3, 3, 0, 51]].T
    )
    sets = risk_sets(panel, 20)
    one, other = compare_signal(panel, "ess", sets), compare(panel.scores("ess"), sets)
    for found, wanted in zip(one.__dict__.values(), other.__dict__.values(), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_an_area_is_resampled_within_strata_as_among_all_runs() -> None:
    panel = small_panel()
    one = compare(panel.scores("ess"), risk_sets(panel, 20))
    assert len(np.unique(one.stratum)) > 1
    draws = draws_of(len(panel.runs), 50)
    weight, total = draws @ one.usable.T.astype(float), draws @ (one.wins * one.usable).T
    mine = draws[:, one.case] * (weight > 0)
    share = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
    np.testing.assert_array_equal(one.replicates(draws), (mine * share).sum(axis=1) / mine.sum(axis=1))


def test_a_comparison_by_strata_is_that_of_all_runs_with_all() -> None:
    panel = small_panel()
    values = np.random.default_rng(8).normal(size=(len(panel.runs), panel.length)).round(1)
    values[::3, 20:90] = np.nan
    panel = replace(panel, values={"ess": values})
    draws = draws_of(len(panel.runs), 50)
    for lead in (5, 20):
        sets = risk_sets(panel, lead)
        parts = StratifiedDraws(draws, panel.strata(MATCH), panel.cluster).parts(sets)
        one, other = StratifiedComparison(panel, "ess", parts), compare_signal(panel, "ess", sets)
        assert len(parts) > 1
        for mine, theirs in zip(one.runs(panel.healthy), other.runs(panel.healthy), strict=True):
            np.testing.assert_array_equal(np.sort(mine), np.sort(theirs))
        assert one.auroc() == other.auroc()
        np.testing.assert_array_equal(one.replicates(), other.replicates(draws, panel.cluster))
    nobody = StratifiedComparison(panel, "ess", [])
    assert np.isnan(nobody.auroc())
    assert [few.size for few in nobody.runs(panel.healthy)] == [0, 0]


def test_stopped_runs_are_neither_lost_nor_healthy_and_undecided_ends_are_cut(make_study, truths) -> None:
    results = make_study({"ess_ratio": truths["nothing"]}, seeds=2)
    alive = [key for key, table in results.evals.groupby("key") if table["sampled_reward"].min() > 0.3]
    results.cells.loc[results.cells["key"] == alive[0], "status"] = "stopped_by"
    last = (results.evals["key"] == alive[1]) & (results.evals["step"] == 300)
    results.evals.loc[last, "sampled_reward"] = 0.01  # down at the end, too briefly to call
    panel = build_panel(results, FEW)
    row = {key: i for i, key in enumerate(panel.runs["key"])}
    assert not panel.healthy[row[alive[0]]]
    assert not panel.failed[row[alive[0]]]
    assert panel.healthy[row[alive[1]]]
    assert panel.end[row[alive[1]]] == 280
    assert panel.end[row[alive[2]]] == 300


def test_other_definitions_use_the_same_runs(make_study, truths) -> None:
    results = make_study({"ess_ratio": truths["leads"]}, seeds=6)
    panel = build_panel(results, FEW)
    same = panel.judged_by(events(results, CollapseRule()))
    np.testing.assert_array_equal(same.found, panel.found)
    none = panel.judged_by(events(results).assign(failed=False, onset=np.nan))
    assert not none.failed.any()
    table = definitions_table(panel, results).query("signal == 'ess'")
    assert (table["low"] > 0.5).all()
    assert len(table) == 5
    regimes = regimes_table(panel)
    assert set(regimes["column"]) == {"task", "staleness", "lr", "method"}
    within = regimes[(regimes["column"] == "staleness") & (regimes["signal"] == "ess")]
    assert within["n_collapsed"].sum() == table["n_collapsed"].iloc[0]
    assert (within["at_case"] > within["at_control"]).all()


def test_every_lost_run_is_listed_with_its_placement(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["leads"]}), FEW)
    table = placements_table(panel)
    one = compare(panel.scores("ess"), risk_sets(panel, 20))
    assert table["above_ess"].mean() == pytest.approx(one.auroc())
    assert len(table) == panel.failed.sum()


def test_a_run_that_ends_as_nan_is_found_at_the_evaluation_before() -> None:
    panel = small_panel()
    onset = panel.onset.copy()
    case = int(np.flatnonzero(panel.failed)[0])
    onset[case] += 7
    assert risk_sets(replace(panel, onset=onset), 20).row.shape == risk_sets(panel, 20).row.shape
