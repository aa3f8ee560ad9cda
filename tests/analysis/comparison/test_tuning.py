from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tuned_intervals

from vcpo_bench.analysis.comparison.best_learning_rate import CROSS_FIT, halves, tune, widening
from vcpo_bench.analysis.comparison.normalized_rewards import normalize, score_column
from vcpo_bench.analysis.intervals import stratified_t
from vcpo_bench.analysis.results import load


def cells(scores, rates=(1e-4, 3e-4), seeds=range(6), methods=("a", "b")):
    """One row per cell; `scores(method, lr, seed)` says how good it is."""
    rows = [
        {"task": "chain", "regime": "fifo", "staleness": 16, "method": method, "lr": lr, "seed": seed}
        | {"score": scores(method, lr, seed), "collapsed": False, "event": "healthy"}
        for method in methods
        for lr in rates
        for seed in seeds
    ]
    return pd.DataFrame(rows)


def test_score_is_the_end_of_the_run_and_zero_is_the_start(tmp_path, make_results):
    results = load(make_results(tmp_path, steps=200))
    rewards = normalize(results)
    row = rewards.table.iloc[0]
    evals = results.evals[results.evals["key"] == row["key"]]
    assert row["score"] == pytest.approx(evals["sampled_reward"].tail(3).mean())
    synchronous = rewards.table[rewards.table["staleness"] == 0]
    assert synchronous["normalized"].mean() == pytest.approx(1)
    collapsed = rewards.table[rewards.table["collapsed"]]
    assert (collapsed["normalized"] < -0.5).all()  # far below the start policy
    assert score_column(rewards) == "normalized"
    assert rewards.anchors["start"].item() == pytest.approx(0.33, abs=0.02)


def test_the_best_synchronous_method_is_the_anchor(tmp_path, make_results):
    shapes = {"reinforce": "stall"}
    rewards = normalize(load(make_results(tmp_path, methods=("clip",), lags=(0, 4), steps=100, shapes=shapes)))
    assert rewards.anchors["sync_method"].item() == "clip"
    assert rewards.anchors["sync_seeds"].item() == 3


@pytest.mark.parametrize("controls", [False, True])
def test_without_an_anchor_nothing_is_normalized(tmp_path, make_results, controls):
    shapes = {"reinforce": "stall"}
    rewards = normalize(load(make_results(tmp_path, steps=100, controls=controls, shapes=shapes)))
    assert rewards.table["normalized"].isna().all()
    assert not rewards.anchors["usable"].any()
    assert score_column(rewards) == "score"


def test_an_error_has_no_score_and_a_nan_keeps_what_it_left(tmp_path, make_results):
    folder = make_results(tmp_path, steps=100, shapes={"vcpo": "error", "tis": "nan"})
    table = normalize(load(folder)).table.set_index("method")
    assert table.loc["vcpo", "score"].isna().all()
    assert table.loc["tis", "score"].notna().all()
    assert table.loc["tis", "event"].eq("nan").all()


def test_halves_are_disjoint_and_cover():
    assert halves([7, 3, 5, 1]) == {1: 0, 3: 1, 5: 0, 7: 1}


def test_the_better_rate_is_chosen_without_the_tested_seed():
    tuned = tune(cells(lambda method, lr, seed: {"a": lr == 3e-4, "b": lr == 1e-4}[method] + 0.01 * seed))
    assert tuned.runs.groupby("method")["lr"].unique().map(list).to_dict() == {"a": [3e-4], "b": [1e-4]}
    assert tuned.runs.groupby("method")["seed"].apply(sorted).map(list).to_dict() == {
        "a": [*range(6)],
        "b": [*range(6)],
    }
    assert tuned.choices["tuning_seeds"].eq(3).all()
    assert tuned.budget["trials"].item() == 6
    assert tuned.budget["equal_seeds"].all()


def test_a_lucky_seed_does_not_choose_its_own_rate():
    table = cells(lambda method, lr, seed: 10.0 if (lr == 1e-4 and seed == 0) else float(lr == 3e-4), methods=("a",))
    runs = tune(table).runs.set_index("seed")
    assert runs.loc[0, "lr"] == 3e-4  # the other half prefers it
    assert runs.loc[[1, 3, 5], "lr"].eq(1e-4).all()  # seed 0 tuned for them


@pytest.mark.slow
def test_tuning_on_noise_has_no_optimism_and_honest_intervals():
    rng = np.random.default_rng(1)
    means, covered = [], 0
    for _ in range(400):
        runs = tune(cells(lambda *_: rng.normal(), rates=(1, 2), methods=("a",))).runs
        mean, low, high, _ = stratified_t([runs["score"]], widen=widening(runs))
        means.append(mean)
        covered += low <= 0 <= high
    assert abs(np.mean(means)) < 0.07  # picking the better of two on the same seeds would give about +0.23
    assert covered >= 380  # where rates are equally good, more than 95%; 92% without widening
    assert widening(tune(cells(lambda *_: 0.5, rates=(1,))).runs) == 1


def test_the_simulation_tunes_as_comparisons_do():
    rewards = np.random.default_rng(3).normal(size=(2, 7, 4))
    table = cells(lambda name, lr, seed: rewards["ab".index(name), seed, lr], rates=range(4), seeds=range(7))
    tuned = tune(table).runs.pivot_table(index="method", columns="seed", values="score")
    np.testing.assert_array_equal(tuned_intervals.cross_fitted(rewards), tuned.to_numpy())


def test_simulated_intervals_are_those_of_comparisons():
    means = tuned_intervals.profile("peak", 3, 0.5)
    assert means.tolist() == [-0.5, 0.0, -0.5]
    noise = np.random.default_rng(4).normal(size=(2, 1, 6, 3))
    gap = np.subtract(*tuned_intervals.cross_fitted(means + noise))[0]
    (found,) = tuned_intervals.t_values(means, 6, 1, np.random.default_rng(4))
    for widen, apart in ((0.99 * found, True), (1.01 * found, False)):
        _, low, high, _ = stratified_t([gap], widen=widen)
        assert (low > 0 or high < 0) is apart


@pytest.mark.parametrize(
    ("seeds", "rates", "ahead", "least"), [(16, 5, 0.75, 1.5), (5, 8, 1.5, 1.6), (32, 2, 0.5, 1.25)]
)
def test_two_equal_methods_are_seldom_called_different(seeds, rates, ahead, least):
    """Where the best rate is just ahead: the worst cases of few and of many seeds and rates."""
    found = tuned_intervals.needed(seeds, rates, studies=2000, ahead=(ahead,))
    assert least < found.widening <= CROSS_FIT
    assert found.wrong <= 0.05


def test_the_page_names_the_widening():
    text = " ".join((Path(__file__).parents[3] / "docs" / "analysis.md").read_text(encoding="utf-8").split())
    assert f"intervals and rankings of tuned runs are widened by {CROSS_FIT:g}." in text
    seeds, rates = tuned_intervals.SEEDS, tuned_intervals.RATES
    assert f"{seeds[0]} to {seeds[-1]} seeds and {rates[0]} to {rates[-1]} learning rates, rounded up" in text


def test_a_method_with_fewer_rates_is_left_out_and_one_with_more_gets_no_more():
    table = cells(lambda method, lr, seed: lr, rates=(1e-4, 3e-4, 1e-3), methods=("a", "b", "rich", "poor"))
    asked = {"a": (1e-4, 3e-4), "b": (1e-4, 3e-4), "rich": (1e-4, 3e-4, 1e-3), "poor": (1e-4,)}
    tuned = tune(table[[row.lr in asked[row.method] for row in table.itertuples()]])
    assert tuned.runs.groupby("method")["lr"].unique().map(list).to_dict() == {"a": [3e-4], "b": [3e-4], "rich": [3e-4]}
    assert tuned.budget["left_out"].item() == ["poor"]


def test_unequal_seeds_are_marked():
    table = cells(lambda *_: 0.5)
    tuned = tune(table[(table["method"] == "a") | (table["seed"] < 4)])
    assert not tuned.budget["equal_seeds"].item()


def test_one_learning_rate_is_no_choice_and_one_seed_no_test():
    assert len(tune(cells(lambda *_: 0.5, rates=(3e-4,))).runs) == 12
    assert tune(cells(lambda *_: 0.5, seeds=(0,))).runs.empty


def test_cells_without_a_score_do_not_choose():
    table = cells(lambda method, lr, seed: np.nan if lr == 3e-4 else 0.2, methods=("a",))
    assert tune(table).runs["lr"].eq(1e-4).all()


def test_variants_at_one_rate_do_not_narrow_the_choice_of_the_others():
    full = cells(lambda method, lr, seed: 0.5 + 1e3 * lr, methods=("a", "b"))
    variants = cells(lambda method, lr, seed: 0.5, rates=(3e-4,), methods=("c", "d", "e"))
    tuned = tune(pd.concat([full, variants], ignore_index=True))
    assert tuned.budget["rates"].item() == [1e-4, 3e-4]
    assert tuned.budget["left_out"].item() == ["c", "d", "e"]
    assert set(tuned.runs["method"]) == {"a", "b"}
