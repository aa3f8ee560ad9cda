import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.comparison.ablation import (
    ablation_table,
    cost_table,
    step_control,
    step_controls,
    variants,
)
from vcpo_bench.analysis.comparison.effect_sentences import step_controls as told
from vcpo_bench.analysis.comparison.pairs import PLACE, all_pairs, contrast, decidable, why_not_judged
from vcpo_bench.analysis.comparison.rankings import task_means
from vcpo_bench.analysis.comparison.sentences import beaten
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.results import load
from vcpo_bench.methods import parse_method

RNG = np.random.default_rng(0)


def runs(means, seeds=6, lags=(16,), tasks=("chain", "walk"), noise=0.02):
    """Runs whose score is the method's mean plus what seed and task share plus noise."""
    rows = []
    for task in tasks:
        for lag in lags:
            for seed in range(seeds):
                shared = RNG.normal(0, 0.3)
                rows += [
                    {"task": task, "regime": "fifo", "staleness": lag, "seed": seed, "lr": 3e-4, "method": method}
                    | {"score": mean + shared + RNG.normal(0, noise), "collapsed": False}
                    for method, mean in means.items()
                ]
    return pd.DataFrame(rows)


def test_an_expression_knows_its_families():
    assert variants("clip+ess") == [("clip", True, False)]
    assert variants("clip+ess(base=0.55)+opob") == [("clip", True, True)]
    assert variants("tis") == [("tis", False, False), ("vcpo", False, False)]
    assert variants("vcpo(ess=off)") == [("vcpo", False, True)]
    assert variants("vcpo(variant=released)") == []
    assert variants("vcpo2+ess") == [("vcpo2", True, False)]  # a plug-in whose name begins like another's
    assert variants("clip+lr-matched(to=clip+ess)") == [("clip+lr-matched(to=clip+ess)", False, False)]


def test_pairing_removes_what_seeds_share():
    table = runs({"a": 0.6, "b": 0.5})
    found = contrast(table, {"a": 1.0, "b": -1.0}, "score")
    assert found.estimate == pytest.approx(0.1, abs=0.03)
    assert 0 < found.low < found.high < 0.2
    assert found.pairs == 12
    assert found.p < 1e-4
    assert found.p_exact == pytest.approx(2 / 4096)


def test_one_seed_at_several_rates_is_one_pair():
    """Three rates that share what a seed does to the difference say no more than one."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(100):
        rows = []
        for seed in range(6):
            shift = rng.normal(0, 0.3)
            for lr in (1e-4, 3e-4, 1e-3):
                place = {"task": "walk", "regime": "fifo", "staleness": 16, "seed": seed, "lr": lr}
                rows += [place | {"method": "a", "score": shift}, place | {"method": "b", "score": rng.normal(0, 0.02)}]
        found = contrast(pd.DataFrame(rows), {"a": 1.0, "b": -1.0}, "score", (*PLACE, "lr"))
        assert found.pairs == 6
        missed += not found.low < 0 < found.high
    assert missed <= 12, "5% and three standard errors; 28% when rates count as pairs"


def test_only_complete_pairs_count():
    table = runs({"a": 0.6, "b": 0.5})
    table = table[~((table["method"] == "b") & (table["seed"] == 0))]
    assert contrast(table, {"a": 1.0, "b": -1.0}, "score").pairs == 10
    assert contrast(table, {"a": 1.0, "c": -1.0}, "score").pairs == 0


def test_what_is_not_judged_says_how_many_pairs_the_best_of_it_has():
    reason = "4 pairs of runs, fewer than 6"
    assert why_not_judged(pd.DataFrame({"pairs": [0, 4, 2]})) == reason
    assert why_not_judged(pd.DataFrame({"pairs": [0, 0]})) == "no two runs make a pair"


def test_a_task_with_a_single_pair_leaves_the_comparison_open():
    """Its spread is unknown, and with it p: that is not 'no difference'."""
    table = runs({"a": 0.9, "b": 0.1})
    table = all_pairs(table[(table["task"] == "chain") | (table["seed"] == 0)], "score")
    assert table["pairs"].item() == 7
    assert table["p"].isna().all()
    assert not decidable(table).any()
    assert why_not_judged(table) == "one of the tasks has a single pair, so that its spread is unknown"


def test_a_method_that_is_worse_by_more_than_chance_is_not_called_equal():
    """The interquartile mean of `a` is the higher one, because it leaves out the quarter of its runs that collapsed."""
    table = runs({"a": 0.95, "b": 0.9}, seeds=16)
    table.loc[(table["method"] == "a") & (table["seed"] % 4 == 0), "score"] -= 1.2
    pairs = all_pairs(table, "score")
    means = {"iqm": [0.95, 0.9], "iqm_low": 0.8, "iqm_high": 1.0}
    ranking = pd.DataFrame(
        {"staleness": 16, "method": ["a", "b"], "runs": 16, "scored": 16, "collapsed": [4, 0]} | means
    )
    tables = {"ranking": ranking, "pairs": pairs, "tuned": table.assign(rates=1)}
    cells = pd.DataFrame({"key": ["one"], "staleness": [16]})
    found = Findings(tables, {name: agreeing(cells, "staleness") for name in tables})
    (text,) = (finding.text for finding in beaten(found))
    assert text == "Lag 16: a is worse in the mean than b (paired t tests, Holm-corrected, 5% level)."
    tables["ranking"] = ranking.assign(collapsed=[16, 0])
    (text,) = (finding.text for finding in beaten(found))
    assert text.startswith("Lag 16: b is better than a "), "none of whose runs survived"
    tables["ranking"] = ranking.assign(collapsed=16)
    assert not list(beaten(found))


def test_the_mean_of_a_task_keeps_regimes_apart():
    """Regimes that differ by 0.4 are no spread of seeds."""
    fifo = runs({"a": 0.5}, tasks=("walk",), seeds=8)
    both = pd.concat([fifo, fifo.assign(regime="random", score=fifo["score"] + 0.4)], ignore_index=True)
    one, two = (task_means(table, "score").iloc[0] for table in (fifo, both))
    assert two["mean"] == pytest.approx(one["mean"] + 0.2)
    assert two["high"] - two["low"] < one["high"] - one["low"]


def test_all_pairs_put_the_better_one_first_and_correct():
    table = all_pairs(runs({"a": 0.5, "b": 0.7, "c": 0.5}, lags=(1, 16)), "score")
    assert len(table) == 6
    assert (table.groupby("staleness")["first"].first() == "b").all()
    assert (table["p_holm"] >= table["p"]).all()
    sure = table[table["p_holm"] < 0.05]
    assert set(sure["first"]) == {"b"}
    assert len(sure) == 4


def test_effects_of_both_halves_and_their_interaction():
    means = {"tis": 0.3, "vcpo(baseline=group)": 0.5, "vcpo(ess=off)": 0.4, "vcpo": 0.65}
    table = ablation_table(runs(means).assign(rates=2), runs(means), "score")
    best = table[(table["at"] == "best rate") & (table["family"] == "vcpo")].set_index("effect")["estimate"]
    expected = {
        "ess": 0.2,
        "opob": 0.1,
        "both": 0.35,
        "ess given opob": 0.25,
        "opob given ess": 0.15,
        "interaction": 0.05,
    }
    assert best.to_dict() == pytest.approx(expected, abs=0.04)
    assert set(table["at"]) == {"best rate", "3e-4"}


def test_one_learning_rate_is_not_called_the_best():
    table = ablation_table(
        runs({"clip": 0.3, "clip+ess": 0.5}).assign(rates=1), runs({"clip": 0.3, "clip+ess": 0.5}), "score"
    )
    assert set(table["at"]) == {"3e-4"}


def test_clipping_that_cancels_ess_scaling_is_seen():
    means = {"tis": 0.3, "vcpo(baseline=group)": 0.5, "clip": 0.5, "clip+ess": 0.5}
    table = ablation_table(runs(means).assign(rates=2), runs(means), "score")
    row = table[(table["family"] == "vcpo, clip") & (table["at"] == "best rate")].iloc[0]
    assert row["low"] > 0
    assert row["estimate"] == pytest.approx(0.2, abs=0.05)
    clip = table[(table["family"] == "clip") & (table["at"] == "best rate")]
    assert clip["effect"].tolist() == ["ess"]
    assert clip["low"].item() < 0 < clip["high"].item()


def test_controls_are_paired_with_the_method_whose_steps_they_use():
    means = {"clip+ess": 0.6, "clip+lr-matched(to=clip+ess)": 0.5, "clip+lr-shuffled(to=clip+ess)": 0.6, "clip": 0.1}
    table = step_controls(runs(means, lags=(1, 16)), "score").set_index(["control", "staleness"])
    assert table.loc[("matched", 16), "method"] == "clip+ess"
    assert table.loc[("matched", 16), "low"] > 0
    assert table.loc[("shuffled", 16), "low"] < 0 < table.loc[("shuffled", 16), "high"]
    assert len(table) == 4


@pytest.mark.parametrize(
    ("noise", "lead", "said"),
    [
        (0.02, 0.0, "so the two are equivalent within 0.05: smaller steps do as well"),
        (0.2, 0.0, "which is undecided"),
        (0.02, 0.3, "so the timing of small steps matters, not only their size"),
        (0.02, -0.3, "so steps of the same sizes at other times do better"),
    ],
)
def test_what_is_said_of_step_controls(noise, lead, said):
    means = {"clip+ess": 0.5 + lead, "clip+lr-matched(to=clip+ess)": 0.5}
    table = step_controls(runs(means, noise=noise), "score")
    (finding,) = told(Findings({"step_controls": table}, {"step_controls": lambda rows: ()}))
    assert finding.text.endswith(f"{said}.")


def test_cost_is_the_median_update_over_the_bare_base(tmp_path, make_results):
    results = load(make_results(tmp_path, methods=("clip", "clip+ess", "vcpo", "tis"), lags=(1,), seeds=(0,), steps=40))
    slow = results.steps["key"].isin(results.cells.query("method == 'clip+ess'")["key"])
    results.steps.loc[slow, "seconds_update"] += 0.001
    table = cost_table(results).set_index("method")
    assert table.loc["clip+ess", "base"] == "clip"
    assert table.loc["vcpo", "base"] == "tis"
    assert table.loc["clip+ess", "added"] == pytest.approx(1, rel=0.3)
    assert np.isnan(table.loc["clip", "added"])


def test_the_default_donor_is_left_out_of_canonical_names():
    assert step_control(parse_method("vcpo(ess=off)+lr-matched(to=vcpo)").canonical) == ("matched", "vcpo")
    assert step_control("clip+lr-shuffled") == ("shuffled", "vcpo")
    assert step_control("clip+lr-matched(to=clip+ess)") == ("matched", "clip+ess")
    assert step_control("vcpo+ess") is None
