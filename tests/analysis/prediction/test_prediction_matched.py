"""Landmarks, risk sets and areas against slow obvious loops."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.auroc import (
    SAME_CONFIGURATION,
    SAME_PLACE,
    area_interval,
    area_p,
    auroc_row,
    auroc_table,
    matching_table,
)
from vcpo_bench.analysis.prediction.landmarks import GUARD, bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import Panel, build_panel

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


@pytest.mark.parametrize("lead", [5, 20, 100])
@pytest.mark.parametrize("ties", [False, True])
def test_the_area_is_the_mean_placement_among_matched_controls(lead: int, ties: bool) -> None:
    panel = small_panel(ties=ties)
    scores, lag = panel.scores("ess"), panel.runs["staleness"].to_numpy()
    placements = []
    for i in np.flatnonzero(panel.failed):
        landmark = int(panel.found[i]) - lead  # updates applied and known
        if not 1 <= landmark <= 200 or np.isnan(scores[i, landmark - 1]):
            continue
        wins = []
        for j in range(len(lag)):
            watched = panel.end[j] >= panel.found[i] and panel.found[j] > panel.found[i] + GUARD
            if lag[j] == lag[i] and watched and np.isfinite(scores[j, landmark - 1]):
                mine, other = scores[i, landmark - 1], scores[j, landmark - 1]
                wins.append(float(mine > other) + 0.5 * float(mine == other))
        if wins:
            placements.append(np.mean(wins))
    sets = risk_sets(panel, lead)
    one = compare(panel, "ess", sets)
    assert one.auroc() == pytest.approx(np.mean(placements))
    assert one.replicates(np.ones((1, len(lag))))[0] == pytest.approx(one.auroc())


def test_a_bootstrap_replicate_is_the_area_of_the_runs_it_drew() -> None:
    panel = small_panel()
    one = compare(panel, "ess", risk_sets(panel, 20))
    draws = np.random.default_rng(1).integers(0, 3, (3, len(panel.runs))).astype(float)
    for drawn, area in zip(draws, one.replicates(draws), strict=True):
        total = weight = 0.0
        for row, case in enumerate(one.case):
            controls = drawn * one.usable[row]
            if controls.sum() > 0:
                total += drawn[case] * (controls * one.wins[row]).sum() / controls.sum()
                weight += drawn[case]
        assert area == pytest.approx(total / weight)


def test_nothing_after_the_landmark_and_no_run_already_lost_is_looked_at() -> None:
    panel = small_panel()
    sets = risk_sets(panel, 20)
    changed = panel.values["ess"].copy()
    for run in range(len(panel.runs)):
        changed[run, int(sets.row.max()) + 1 :] = 1e9  # the future of every case
    late = replace(panel, values={"ess": changed})
    np.testing.assert_array_equal(compare(late, "ess", sets).wins, compare(panel, "ess", sets).wins)
    for row, case in enumerate(sets.case):
        controls = sets.controls[row]
        assert (panel.found[controls] > panel.found[case] + GUARD).all()
        assert (panel.end[controls] >= panel.found[case]).all()
        assert not controls[case]
    np.testing.assert_array_equal(sets.row, panel.found[sets.case] - 20 - 1)


def test_step_and_lag_alone_score_one_half_by_construction(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["leads"]}), FEW)
    table = auroc_table([panel])
    assert (table.loc[table["signal"].isin(["step", "lag"]), "value"] == 0.5).all()
    matched = matching_table(panel).set_index(["match", "signal"])
    main = table[table["lead"] == 20].set_index("signal")
    for name in FEW:
        assert matched.loc[(SAME_PLACE, name), "value"] == main.loc[name, "value"]
    alone = matched.loc[(SAME_CONFIGURATION, "ess")]
    assert alone["low"] > 0.5
    assert alone["n_healthy"] <= main.loc["ess", "n_healthy"]


def test_p_values_of_noise_are_spread_as_they_should_be(make_study, truths) -> None:
    panel = build_panel(make_study({"ess_ratio": truths["nothing"]}, seeds=6), FEW)
    sets, draws = risk_sets(panel, 20), bootstrap_draws(panel, 200)
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=(len(panel.runs), panel.length)) for _ in range(100)]
    rows = [auroc_row(compare(replace(panel, values={"ess": one}), "ess", sets), panel, draws) for one in noise]
    assert np.mean([row["p"] < 0.05 for row in rows]) <= 0.12
    assert np.mean([row["low"] <= 0.5 <= row["high"] for row in rows]) >= 0.88


def test_a_perfect_area_has_an_interval_all_the_same() -> None:
    low, high = area_interval(1.0, np.ones(50), 15)
    assert (round(low, 2), high) == (0.8, 1.0)
    assert area_interval(0.7, np.linspace(0.5, 0.9, 1001), 15) == pytest.approx((0.51, 0.89))
    assert 0 < area_p(1.0, np.ones(50), 15) < 1e-10
    assert area_p(0.5, np.full(50, 0.5), 15) == 1.0


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
    rows = np.array([3, 3, 0, 51, *range(panel.length)])
    np.testing.assert_array_equal(panel.scores_at("ess", rows), panel.scores("ess")[:, rows].T)


def test_an_area_is_resampled_within_strata_as_among_all_runs() -> None:
    panel = small_panel()
    one = compare(panel, "ess", risk_sets(panel, 20))
    assert len(np.unique(one.stratum)) > 1
    draws = bootstrap_draws(panel, 50)
    weight, total = draws @ one.usable.T.astype(float), draws @ (one.wins * one.usable).T
    mine = draws[:, one.case] * (weight > 0)
    share = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
    np.testing.assert_array_equal(one.replicates(draws), (mine * share).sum(axis=1) / mine.sum(axis=1))


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


def test_a_run_that_ends_as_nan_is_found_at_the_evaluation_before() -> None:
    panel = small_panel()
    onset = panel.onset.copy()
    case = int(np.flatnonzero(panel.failed)[0])
    onset[case] += 7
    assert risk_sets(replace(panel, onset=onset), 20).row.shape == risk_sets(panel, 20).row.shape
