import json
import re

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.caveats import DAMAGE
from vcpo_bench.analysis.commands import ANALYSES, run
from vcpo_bench.analysis.commands.compare import analyze_compare
from vcpo_bench.analysis.comparison.best_learning_rate import tune
from vcpo_bench.analysis.comparison.normalized_rewards import normalize
from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.comparison.sentences import tuning
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.results import load


@pytest.fixture(scope="module")
def compared(tmp_path_factory, make_results):
    folder = tmp_path_factory.mktemp("compare")
    make_results(
        folder,
        methods=("vcpo", "tis", "clip"),
        lags=(1, 16),
        seeds=range(6),
        steps=200,
        lrs=(1e-4, 3e-4),
        tasks=("chain", "walk"),
        shapes=lambda method, lag, seed: (
            "stall" if method == "clip" else "collapsed" if method == "tis" and lag > 4 else "healthy"
        ),
    )
    return analyze_compare(load(folder), replications=300)


def test_ranking_is_of_tuned_runs_with_synchronous_as_one(compared):
    table = compared.tables["ranking"].set_index(["staleness", "method"])
    assert table.loc[(16, "vcpo"), "iqm"] == pytest.approx(1, abs=0.1)
    assert table.loc[(16, "clip"), "iqm"] == pytest.approx(0, abs=0.1)
    assert table.loc[(16, "tis"), "iqm"] < -0.5
    assert table.loc[(16, "tis"), "collapsed"] == 12
    assert (table["iqm_low"] <= table["iqm"]).all()
    assert table["seeds"].eq(6).all()
    assert 0 not in table.index.get_level_values("staleness")


def test_every_seed_is_tested_once_per_method(compared):
    tuned = compared.tables["tuned"]
    assert tuned.groupby(["task", "staleness", "method"])["seed"].apply(lambda s: sorted(s) == list(range(6))).all()
    assert compared.tables["budget"]["trials"].eq(6).all()


def test_pairs_improvement_and_profiles_agree(compared):
    pairs = compared.tables["pairs"].set_index(["staleness", "first", "second"])
    assert pairs.loc[(16, "vcpo", "tis"), "low"] > 0.5
    chance = compared.tables["improvement"]
    row = chance[(chance["staleness"] == 16) & (chance["first"] == "clip") & (chance["second"] == "vcpo")]
    assert row["probability"].item() == 0
    profiles = compared.tables["profiles"].set_index(["method", "level"])["share"]
    assert profiles["vcpo", 0.5] == 1
    assert profiles["tis", 0.5] == 0.5


def test_sentences_answer_the_questions(compared):
    said = [one.text for one in compared.statements]
    text = " ".join(said)
    assert "Lag 16: vcpo at learning rate " in text
    assert "ends highest, " in text
    better = next(sentence for sentence in said if "Lag 16: vcpo is better than" in sentence)
    assert all(name in better for name in ("clip", "tis"))
    assert "cannot be told apart" in text
    assert "is first at 75% of the synchronous gain" in text


def test_same_folder_same_tables(tmp_path, make_results):
    folder = make_results(tmp_path, steps=60)
    first, second = (analyze_compare(load(folder), replications=50) for _ in range(2))
    for name, table in first.tables.items():
        assert table.equals(second.tables[name]), name
    assert first.statements == second.statements


FEW = [f"{name}(replications=20)" if name == "compare" else name for name in ANALYSES.names()]
"""Every analysis, with few replications."""


@pytest.mark.parametrize(
    "grid",
    [
        {"methods": ("vcpo",), "lags": (1,), "seeds": (0,), "controls": False},
        {"methods": ("vcpo", "tis"), "lags": (1, 16), "seeds": (0,), "shapes": lambda *_: "error"},
        {"methods": ("vcpo", "tis"), "lags": (1,), "seeds": (0, 1), "shapes": lambda *_: "nan"},
        {"methods": ("vcpo",), "lags": (0,), "seeds": (0, 1), "controls": False},
        {
            "methods": ("vcpo", "tis"),
            "lags": (4,),
            "seeds": (0, 1),
            "shapes": lambda *_: "stall",
            "record": "diagnostics",
        },
    ],
    ids=["one cell", "only errors", "only nan", "only synchronous", "nothing learns"],
)
def test_poor_folders_give_words_not_tracebacks(tmp_path, make_results, grid):
    folder = make_results(tmp_path, steps=40, **grid)
    for kind in FEW:
        findings = run(kind, folder)
        assert findings.statements, kind
        for one in findings.statements:
            words = set(re.sub(r"as nan\b|\d+ nan\b", "", one.text).split())
            assert not {"nan", "nan%", "inf", "None"} & words, one.text
            assert one.rows


def test_damage_and_versions_come_first(tmp_path, make_results):
    folder = make_results(tmp_path, steps=60, rules_version="0.9")
    victim = sorted((folder / "cells").iterdir())[0] / "steps.parquet"
    victim.write_bytes(b"nonsense")
    found = run("weights", folder)
    damage, version = found.statements[:2]
    assert damage.text.startswith(f"Damaged file: {victim} cannot be read")
    assert (damage.topic, damage.keys) == (DAMAGE, (victim.parent.name,))
    assert found.tables["problems"].loc[list(damage.rows), "file"].tolist() == [str(victim)]
    assert "rules version 0.9" in version.text
    assert set(found.tables["cells"].loc[list(version.rows), "rules_version"]) == {"0.9"}


COMPARING = ("is better than", "cannot be told apart", "a gain", "a loss", "so the timing", "differs between")


@pytest.mark.parametrize("lrs", [(3e-4,), (1e-4, 3e-4)])
@pytest.mark.parametrize("seeds", [1, 5])
def test_nothing_is_compared_where_an_exact_test_cannot_reach_its_level(tmp_path, make_results, seeds, lrs):
    """With up to five pairs the exact p is at least 1/16, whatever the t test says of the same runs."""
    methods = ("vcpo", "tis", "clip", "clip+ess", "vcpo(ess=off)", "vcpo(ess=off)+lr-matched")
    places = {"methods": methods, "lags": (16,), "seeds": range(seeds), "lrs": lrs}
    results = load(make_results(tmp_path, steps=60, **places))
    said = [one.text for one in analyze_compare(results, replications=20).statements]
    assert not [text for text in said if any(words in text for words in COMPARING)]
    assert any("shown from 6 on" in text or "fewer than 6" in text for text in said)
    assert any(" at learning rate " in text for text in said) == (len(lrs) > 1 and seeds > 1)
    assert "of 0" not in " ".join(said)


def test_six_pairs_are_enough_to_compare(tmp_path, make_results):
    results = load(make_results(tmp_path, methods=("vcpo", "tis"), lags=(16,), seeds=range(6), steps=60))
    said = " ".join(one.text for one in analyze_compare(results, replications=20).statements)
    assert "vcpo is better than" in said
    assert "Lag 16: vcpo ends at reward " in said, "of one learning rate there is no choice to name"


def test_one_method_is_not_the_highest_or_the_first(tmp_path, make_results):
    folder = make_results(tmp_path, methods=("vcpo",), lags=(16,), seeds=range(3), steps=200, controls=False)
    make_results(tmp_path, methods=("vcpo",), lags=(0,), seeds=range(3), steps=200, controls=False)
    said = " ".join(one.text for one in analyze_compare(load(folder), replications=20).statements)
    assert "vcpo ends at reward " in said
    assert "vcpo reaches 75%" in said
    assert "highest" not in said


@pytest.mark.parametrize("controls", [True, False])
def test_estimates_lie_inside_their_intervals_and_rewards_within_their_range(tmp_path, make_results, controls):
    shapes = {"tis": "collapsed"}
    results = load(make_results(tmp_path, seeds=range(6), steps=60, shapes=shapes, controls=controls))
    found = analyze_compare(results, replications=20)
    for name, estimate in (("ranking", "iqm"), ("by_task", "mean"), ("targets", "mean_updates")):
        table = found.tables[name]
        low, high = (f"{estimate}_low", f"{estimate}_high") if name != "by_task" else ("low", "high")
        known = table[table[low].notna()]
        assert ((known[low] <= known[estimate]) & (known[estimate] <= known[high])).all(), name
        if not controls and name != "targets":  # not normalized: these are rewards
            assert len(known)
            assert known[[low, high]].stack().between(0, 1).all(), name
    board = scoreboard(results)
    ends = board[[f"{name}_{end}" for name in ("final_reward", "best_reward") for end in ("low", "high")]]
    assert ends.stack().between(0, 1).all()


def test_few_seeds_are_said(tmp_path, make_results):
    findings = analyze_compare(load(make_results(tmp_path, steps=60, seeds=(0, 1, 2))), replications=50)
    assert any("3 runs per method and lag: " in one.text for one in findings.statements)
    assert any("nothing was tuned" in one.text for one in findings.statements)
    assert np.isfinite(findings.tables["ranking"]["iqm"]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_columns_of_nonsense_are_missing_values_not_tracebacks(tmp_path, make_results, value):
    folder = make_results(tmp_path, lags=(16,), seeds=(0, 1), steps=40, record="full")
    for number, path in enumerate(sorted((folder / "cells").glob("*/[!l]*.parquet"))):
        table = pd.read_parquet(path)
        floats = list(table.select_dtypes("float"))
        table.loc[number % 3 :, floats[number % len(floats)]] = value
        table.head(0 if number % 7 == 0 else None).to_parquet(path, index=False)
    assert all(run(kind, folder).statements for kind in FEW)


def test_a_search_that_ends_at_its_edge_is_said(tmp_path, make_results):
    folder = make_results(tmp_path, methods=("vcpo",), lags=(4,), seeds=range(6), lrs=(1e-4, 3e-4))
    rewards = normalize(load(folder))
    tuned = tune(rewards.table)
    tables = {"choices": tuned.choices, "budget": tuned.budget, "tuned": tuned.runs}
    found = Findings(tables, {"choices": agreeing(rewards.table, "method")})
    tuned.choices["chosen_lr"] = 3e-4
    (edge,) = [one for one in tuning(found) if "beyond" in one.text]
    assert edge.text.startswith("For reinforce and vcpo the largest learning rate tried, 3e-4")
    tuned.choices["chosen_lr"] = 1e-4
    (edge,) = [one for one in tuning(found) if "beyond" in one.text]
    assert edge.text.startswith("For reinforce and vcpo the smallest learning rate tried, 1e-4")
    tuned.choices.loc[tuned.choices.index % 2 == 0, "chosen_lr"] = 3e-4
    edges = [one.text for one in tuning(found) if "beyond" in one.text]
    assert all(
        "4, in a part of the seeds or tasks at least: a better" in one and "the best at lag " in one for one in edges
    )
    assert {one.split(" learning")[0].split()[-1] for one in edges} == {"largest", "smallest"}
    tuned.choices["chosen_lr"] = 2e-4
    assert not [one for one in tuning(found) if "beyond" in one.text]


def test_synchronous_training_that_falls_is_said_to_lose(tmp_path, make_results):
    found = analyze_compare(load(make_results(tmp_path, ("vcpo",), (1,), (0,), 60, shapes={"reinforce": "collapsed"})))
    fall = -(found.tables["anchors"]["sync"] - found.tables["anchors"]["start"]).item()
    assert fall > 0
    assert any(f"synchronous training loses {fall:.3f}, so" in one.text for one in found.statements)


def test_an_anchor_at_the_edge_of_the_rates_tried_is_said(tmp_path, make_results):
    results = load(make_results(tmp_path, methods=("vcpo",), lags=(4,), seeds=range(6), lrs=(1e-4, 3e-4)))
    anchors = normalize(results).anchors
    assert anchors["sync_at_edge"].all(), "of two rates each is an edge"
    said = [one.text for one in analyze_compare(results, 50).statements if "rewards are normalized by" in one.text]
    assert len(said) == len(anchors)
    assert said[0].startswith(
        "chain: the synchronous runs that rewards are normalized by have the smallest or the largest"
    )
    one = load(make_results(tmp_path / "one", methods=("vcpo",), lags=(4,), seeds=range(6), lrs=(3e-4,)))
    assert not normalize(one).anchors["sync_at_edge"].any()


def test_pooling_a_folder_of_other_settings_moves_no_score_of_the_first(tmp_path, make_results):
    first = make_results(tmp_path / "a", lags=(16,), seeds=range(3), steps=100)
    longer = make_results(tmp_path / "b", methods=("clip",), lags=(0, 16), seeds=range(3), steps=400)
    for file in (tmp_path / "b").rglob("cell.json"):
        facts = json.loads(file.read_text())
        file.write_text(json.dumps(facts | {"config": facts["config"] | {"responses": 16}}))
    alone, pooled = (analyze_compare(load(folders), replications=20) for folders in (first, [first, longer]))
    before, after = (found.tables["scores"].set_index("key")["normalized"] for found in (alone, pooled))
    assert before.notna().all()
    assert after[before.index].equals(before)
    assert pooled.tables["anchors"]["task"].tolist() == [
        "chain, steps 100, responses 8",
        "chain, steps 400, responses 16",
    ]
    pairs = pooled.tables["pairs"]
    assert pairs.set_index(["first", "second"]).loc[("clip", "vcpo"), "pairs"] == 0
    known = pooled.tables["anchors"]
    assert all(set(pooled.keys("anchors", known.iloc[[row]])) for row in range(2))
