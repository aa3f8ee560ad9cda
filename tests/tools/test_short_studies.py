"""The short studies: pages are current, registrations say what the code runs, rules find what was planted."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from short_studies import contrasts, page
from short_studies.catalog import all_studies, chosen
from short_studies.collect import RUNS, joined, lacking, run_table, shipped, whole
from short_studies.run import make, plan
from short_studies.studies import cold_start, cures, every_method, sixteen_seeds, step_rules
from short_studies.study import Study
from study_pages.markers import filled

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.errors import UsageError

STUDIES = all_studies()


def planted(study: Study, reward: Callable[[dict[Hashable, Any]], float]) -> pd.DataFrame:
    """The table of a study's runs, each with the reward that a function gives its row."""
    configs = [cell.config for cell in study.cells().values()]
    runs = pd.DataFrame([{name: getattr(config, name) for name in study.place} for config in configs])
    noise = np.random.default_rng(0).normal(size=len(runs)) * 0.005
    rewards = [reward(row) for row in runs.to_dict("records")] + noise
    facts = {"status": "completed", "event": "healthy", "failed": False, "onset": np.nan, "start_reward": 0.3}
    facts |= {"lag": 16.0, "ess": 0.5, "kl": 0.01, "step_scale": 0.7, "length": 12.0}
    return runs.assign(**facts, final_reward=rewards).sort_values([*study.place]).reset_index(drop=True)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_page_and_tables_follow_from_the_shipped_runs(study: Study) -> None:
    made, tables = page.parts(study)
    text = (study.folder / page.PAGE).read_text(encoding="utf-8")
    assert filled(text, made, page.TOOL) == text, "run: python tools/short_studies/page.py"
    for name, table in tables.items():
        assert (study.folder / f"{name}.csv").read_text() == table.to_csv(index=False, float_format="%.6g")
    runs = shipped(study)
    assert runs.empty or whole(study, runs)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_the_registration_says_what_is_run(study: Study) -> None:
    text = " ".join((study.folder / "registration.md").read_text(encoding="utf-8").split())
    assert f"{len(study.cells())} runs, {study.seconds:g} core-seconds each" in text
    assert f"--studies {study.name} --jobs 1 --stack 32" in text
    for grid in study.grids:
        assert f"{grid.settings.steps} updates of {grid.settings.prompts} prompts x 8 responses" in text
        assert all(f"`{task}`" in text for task in grid.tasks)
        rates = [f"{rate:.1e}".replace(".0e", "e").replace("e-0", "e-") for rate in grid.lrs]
        assert all(rate in text for rate in rates), rates
        assert grid.methods == ("all",) or all(method in text for method in grid.methods)


def test_rules_have_equal_budgets_and_one_host() -> None:
    cells = [cell.config for cell in STUDIES["step-rules"].cells().values()]
    assert {config.method for config in cells} == set(step_rules.RULES)
    rates = {rule: sorted({config.lr for config in cells if config.method == rule}) for rule in step_rules.RULES}
    assert {len(own) for own in rates.values()} == {6}
    assert all(rule.split("+")[0] == step_rules.HOST for rule in step_rules.RULES)
    assert rates[step_rules.GAP] == pytest.approx([4 * rate for rate in rates[step_rules.ESS]])


def test_seeds_that_choose_a_rate_do_not_judge_it() -> None:
    def reward(row: dict[Hashable, Any]) -> float:
        """The choosing seeds like 2e-4, the others 4e-4; ESS scaling is 0.1 ahead for the others alone."""
        liked = 2e-4 if row["seed"] in step_rules.CHOOSING else 4e-4
        ahead = 0.1 * (row["method"] == step_rules.ESS and row["seed"] in step_rules.JUDGING)
        return 0.5 + ahead - 0.2 * abs(np.log2(row["lr"] / liked))

    made = step_rules.tables(planted(STUDIES["step-rules"], reward))
    rules = made["rules"].set_index(["task", "rule"])
    assert rules.loc[("walk", step_rules.HOST), "rate"] == 2e-4
    assert rules.loc[("walk", step_rules.HOST), "reward"] == pytest.approx(0.3, abs=0.01), "at another rate: 0.5"
    against = made["contrasts"].set_index(["task", "against"])
    assert against.loc[("walk", step_rules.HOST), "difference"] == pytest.approx(0.1, abs=0.01)
    assert set(made["contrasts"]["seeds"]) == {len(step_rules.JUDGING)}


def test_a_difference_without_a_p_is_undecided() -> None:
    one, other = pd.Series([0.5], index=[7]), pd.Series([0.1], index=[7])
    table = contrasts.judged(pd.DataFrame([contrasts.contrast(one, other)]), "higher", "lower")
    assert set(table["verdict"]) == {"undecided"}


@pytest.mark.parametrize(("lead", "said"), [(0.1, "ESS better"), (-0.1, "ESS worse"), (0.0, "equivalent")])
def test_step_rules_find_a_planted_lead(lead: float, said: str) -> None:
    runs = planted(STUDIES["step-rules"], lambda row: 0.5 + lead * (row["method"] == step_rules.ESS))
    made = step_rules.tables(runs)
    assert set(made["contrasts"]["verdict"]) == {said}
    told = " ".join(step_rules.answer(made))
    assert ("is not shown to beat" in told) == (said != "ESS better")
    assert ("ESS beats gap-aware" in told) == (said == "ESS better")


def test_noise_is_undecided_and_edges_are_flagged() -> None:
    random = np.random.default_rng(3)
    runs = planted(STUDIES["step-rules"], lambda row: random.normal() * 0.3)
    made = step_rules.tables(runs)
    assert {"undecided"} == set(made["contrasts"]["verdict"])
    runs = planted(STUDIES["step-rules"], lambda row: -abs(np.log(row["lr"] / 2e-4)))
    edges = step_rules.tables(runs)["rules"].set_index("rule")["at_edge"]
    assert set(edges[step_rules.GAP]) == {"yes"}
    assert set(edges.drop(step_rules.GAP)) == {""}


def test_runs_of_two_sessions_add_up(tmp_path: Path) -> None:
    study = replace(STUDIES["step-rules"], name=str(tmp_path))
    assert len(lacking(study, shipped(study))) == len(study.cells())
    runs = planted(study, lambda row: 0.5)
    old, new = runs[runs["seed"] < 3], runs[runs["seed"] >= 2].assign(final_reward=0.9)
    old.to_csv(tmp_path / RUNS, index=False, float_format="%.6g")
    assert {cell.config.seed for cell in lacking(study, shipped(study))} == set(range(3, 16))
    both = joined(study, shipped(study), new)
    assert whole(study, both)
    assert lacking(study, both) == []
    assert set(both.loc[both["seed"] == 2, "final_reward"]) == {0.9}


def test_a_rule_that_never_acts_is_named_and_a_rule_that_forgives_the_rate_is_seen() -> None:
    runs = planted(
        STUDIES["step-rules"], lambda row: 0.5 - 0.3 * (row["lr"] > 5e-4 and row["method"] != step_rules.ESS)
    )
    place = ["task", "lr", "seed"]
    host = runs[runs["method"] == step_rules.HOST].set_index(place)["final_reward"]
    idle = runs["method"] == step_rules.SURGE
    runs.loc[idle, "final_reward"] = runs[idle].set_index(place).index.map(host)
    made = step_rules.tables(runs)
    ladders = made["ladders"].set_index(["task", "rule"])
    assert ladders.loc["walk", step_rules.SURGE]["other_runs"] == "0 of 96"
    assert ladders.loc["walk", step_rules.GAP]["other_runs"] == "64 of 64"
    assert ladders.loc["walk-eos", step_rules.ESS]["within_the_margin"] == "6 of 6 rates"
    assert ladders.loc["walk-eos", step_rules.HOST]["within_the_margin"] == "4 of 6 rates"
    assert set(made["too_high"].set_index("rule").loc[step_rules.ESS, "verdict"]) == {"higher"}
    assert set(made["too_high"].set_index("rule").loc[step_rules.KL, "verdict"]) == {"equivalent"}
    told = [line for line in step_rules.answer(made) if line.startswith("Never acted")]
    assert told[0].count(step_rules.SURGE) == 2
    assert step_rules.GAP not in told[0]


def test_cures_separate_harm_from_what_methods_pay() -> None:
    mismatched = "fifo(top_p=0.8)"
    runs = planted(
        STUDIES["cures"],
        lambda row: 0.6 - 0.2 * (row["regime"] == mismatched and row["method"] in ("reinforce", "vcpo")),
    )
    made = cures.tables(runs)
    harm = made["harm"].set_index(["task", "lag", "effect"])["verdict"]
    assert harm["walk", 0, "top-p - exact"] == "lower"
    assert harm["walk-eos", 16, "top-p, replayed - top-p"] == "higher"
    assert harm["walk", 16, "bf16 - exact"] == "equivalent"
    verdicts = made["cures"].set_index(["task", "lag", "mismatch", "correction_in_loss"])["verdict"]
    assert len(verdicts) == 32
    assert verdicts["walk", 0, "top-p", "vcpo"] == "sampler better"
    assert verdicts["walk", 0, "top-p", "icepop"] == "equivalent"
    told = cures.answer(made)[-5:-1]
    assert [line.split(",")[0] for line in told] == ["`walk`", "`walk`", "`walk-eos`", "`walk-eos`"]
    assert all("in the loss, 8 comparisons:" in line and "sampler better 1" in line for line in told)


def test_sixteen_seeds_find_a_planted_lead() -> None:
    runs = planted(STUDIES["sixteen-seeds"], lambda row: 0.5 + 0.2 * (row["method"] in ("vcpo", "clip")))
    made = sixteen_seeds.tables(runs)
    verdicts = made["contrasts"].set_index("contrast")["verdict"]
    assert verdicts[f"vcpo - {sixteen_seeds.SAME_MEAN}"] == "higher"
    assert verdicts["clip+ess - clip"] == "lower"
    assert set(made["contrasts"]["seeds"]) == {16}
    assert len(sixteen_seeds.answer(made)) == len(made["contrasts"]) == 3


def test_cold_starts_are_told_from_failures_at_the_lag() -> None:
    runs = planted(STUDIES["cold-start"], lambda row: 0.5)
    cold = runs["lr_warmup"] == 0
    runs.loc[cold, ["failed", "onset"]] = [True, 10.0]
    runs.loc[~cold & (runs["staleness"] == 16) & (runs["regime"] == cold_start.RAMP), ["failed", "onset"]] = [
        True,
        40.0,
    ]
    made = cold_start.tables(runs)
    effects = made["effects"].set_index(["task", "effect", "of"])
    early = effects.loc[("walk", "warm-up - none, lags 16 and 64", "early")]
    assert (early["difference"], early["verdict"], early["seeds"]) == (-1.0, "lower", 8)
    hold = effects.loc[("chain", "hold - ramp, warm-up 20", "failed")]
    assert (hold["difference"], hold["verdict"]) == (-0.5, "lower")
    told = cold_start.answer(made)
    assert early["p_exact"] == 2 / 2**8
    assert effects.loc[("walk", "hold - ramp, warm-up 20", "early"), "verdict"] == "same fates"
    assert "`vcpo`, warm-up of 0 updates, lags 16 and 64: 32 of 32 runs fail, 32 of them before" in told[-2]
    assert "`vcpo`, warm-up of 20 updates, lags 16 and 64: 16 of 32 runs fail, 0 of them before" in told[-1]


def test_every_method_counts_failures_and_errors() -> None:
    runs = planted(STUDIES["every-method"], lambda row: 0.5)
    runs.loc[runs["method"] == "clip", "failed"] = True
    runs.loc[runs.index[0], "status"] = "error"
    made = every_method.tables(runs)
    told = every_method.answer(made)[0]
    methods = runs.loc[runs["staleness"] == every_method.LAG, "method"].nunique()
    assert told.startswith(f"{methods} methods, {methods * 9} runs: 1 ended in an error, 9 failed")
    assert f"{methods - 1} methods failed in none" in told
    runs.loc[(runs["method"] == "tis") & (runs["lr"] == 4e-4), "final_reward"] = 0.1
    assert f"1 of {methods * 3} means" in " ".join(every_method.answer(every_method.tables(runs)))


def test_studies_are_chosen_by_name() -> None:
    with pytest.raises(UsageError, match="no such study; known: step-rules, cures, every-method"):
        chosen("phase")
    assert "together" in plan(list(STUDIES.values()))


@pytest.mark.slow
def test_runs_become_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = CellSettings(steps=4, prompts=2, responses=2, eval_every=1)
    grid = GridSpec(
        ("tis", "reinforce+gap-aware"), (2,), (0,), ("walk-eos",), (1e-4,), settings=settings, controls=False
    )
    study = replace(STUDIES["every-method"], name="tiny", grids=(grid,))
    make(study, RunOptions(tmp_path / "tiny", 1, stack=32))
    runs = run_table(study, tmp_path / "tiny")
    assert whole(study, runs)
    assert set(runs["lag"]) == {2.0}
    assert runs[["final_reward", "ess", "kl", "step_scale", "length"]].notna().all(axis=None)
    assert "tiny: 2 runs" in capsys.readouterr().out
