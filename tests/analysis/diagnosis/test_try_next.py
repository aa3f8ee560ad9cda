"""The first lines of the answer: what happened in order, what to change, and from where to start again."""

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import yaml

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose
from vcpo_bench.analysis.diagnosis.chain import chain_sentence
from vcpo_bench.analysis.diagnosis.diagnose import CAUSES
from vcpo_bench.analysis.diagnosis.try_next import MOST, SETTINGS
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.logs.names import columns, frameworks
from vcpo_bench.reports.terminal.diagnosis import diagnosis_text
from vcpo_bench.reports.writers.diagnosis_page import diagnosis_page

ACTIONS = yaml.safe_load((SETTINGS / "actions.yaml").read_text())
TRAINERS = sorted(file.stem for file in SETTINGS.glob("*.yaml") if file.stem != "actions")
VERL = yaml.safe_load((SETTINGS / "verl.yaml").read_text())["settings"]
T = np.arange(200)


def run_of(folder: Path, **logged: np.ndarray) -> Diagnosis:
    """A run of verl that loses its reward at step 150."""
    rows = {"critic/score/mean": np.where(T < 150, 0.6, 0.02), "actor/pg_loss": np.full(T.size, 0.1), **logged}
    path = folder / "metrics.jsonl"
    path.write_text("\n".join(json.dumps({"step": int(t), **{k: float(v[t]) for k, v in rows.items()}}) for t in T))
    return diagnose(read_run(path))


def grown(from_step: int) -> np.ndarray:
    return 0.01 * np.where(from_step > T, 1.0, 10.0) + 1e-4 * np.sin(T)


GAP = "training/rollout_probs_diff_mean"
STALENESS = "training/off_policy/trajectory_staleness/mean"


def test_the_chain_is_in_the_order_in_which_things_began(tmp_path: Path) -> None:
    found = run_of(tmp_path, **{GAP: grown(90), "actor/entropy": grown(120) * 10})
    assert [(one.sign, one.step) for one in found.chain] == [
        ("engine gap up", 90),
        ("entropy up", 120),
        ("reward down", found.onset),
    ]
    assert chain_sentence(found.chain) == "Engine gap up from step 90, entropy up from 120, reward down from 150."
    assert diagnosis_text(found).splitlines()[1].strip() == chain_sentence(found.chain)


def test_one_resumes_before_the_earliest_sign_with_settings_of_the_trainer(tmp_path: Path) -> None:
    found = run_of(tmp_path, **{GAP: grown(90)})
    facts = found.as_dict()
    assert (found.resume_from, facts["resume_from"]) == (90, 90)
    assert "algorithm.rollout_correction.rollout_is=sequence" in facts["try_next"][0]["set"]
    assert len(found.try_next) <= MOST
    text = diagnosis_text(found)
    assert "from the last checkpoint before step 90 (trainer.resume_mode=resume_path" in text
    assert text.index("Try next") < text.index("Causes") < text.index("Signals")


def test_what_the_log_shows_to_be_on_is_no_advice(tmp_path: Path) -> None:
    found = run_of(tmp_path, **{GAP: grown(90), "rollout_corr/rollout_is_mean": np.full(T.size, 0.99)})
    assert found.try_next
    assert not any("rollout_is=sequence" in one.set for one in found.try_next)


def test_what_the_trainer_does_by_default_is_no_advice(tmp_path: Path) -> None:
    rows = {
        "trainer": {"mismatch_kl/all/mean": grown(90), "loss/mean": np.full(T.size, 0.1)},
        "orchestrator": {
            "train/agg/all/math/reward/mean": np.where(T < 150, 0.6, 0.02),
            "off_policy/mean": 2.0 + 0 * T,
        },
    }
    for part, logged in rows.items():
        (tmp_path / part).mkdir()
        lines = [json.dumps({"step": int(t), **{k: float(v[t]) for k, v in logged.items()}}) for t in T]
        (tmp_path / part / "metrics.jsonl").write_text("\n".join(lines))
    found = diagnose(read_run([tmp_path / part / "metrics.jsonl" for part in rows]))
    assert found.causes[0].name == "lag and weights"
    said = " ".join(one.set for one in found.try_next)
    assert ACTIONS["actions"]["correct"]["words"] not in said
    assert [setting in said for setting in ("max_off_policy_steps", "eps = 0.1", "half of lr")] == [True] * 3
    assert not any("no correction shows" in one.why for one in found.try_next)


@pytest.mark.parametrize(("tokens", "kl"), [(1560, 0.001), (1560, 0.03), (60, 0.001)])
def test_the_mask_of_verl_keeps_most_responses_of_a_run_that_is_well(tokens: int, kl: float) -> None:
    """Their log-ratios are normal, with twice the KL as variance per token; verl bounds the mirrored ratio."""
    rule, threshold = (one.rpartition("=")[2] for one in VERL["mask_far"].split())
    assert rule == "seq_mean_k1"
    low, high = (float(bound) for bound in threshold.split("_"))
    mean = NormalDist(kl, math.sqrt(2 * kl / tokens))
    assert mean.cdf(math.log(high)) - mean.cdf(math.log(low)) > 0.99


def test_the_lag_is_no_advice_where_there_is_none(tmp_path: Path) -> None:
    without = run_of(tmp_path, **{"rollout_corr/k3_kl": grown(90)})
    stale = run_of(tmp_path, **{"rollout_corr/k3_kl": grown(90), STALENESS: np.where(T < 90, 1.0, 8.0)})
    assert not any("max_off_policy_threshold" in one.set for one in without.try_next)
    assert any("max_off_policy_threshold" in one.set for one in stale.try_next)


def test_without_a_probable_cause_there_is_no_advice(tmp_path: Path) -> None:
    found = run_of(tmp_path, **{GAP: np.full(T.size, 0.01)})
    assert found.verdict == "collapsed"
    assert (found.chain, found.try_next) == ((), ())
    assert found.as_dict()["resume_from"] is None
    assert "Try next" not in diagnosis_text(found)


def test_a_trainer_without_a_file_gets_general_words(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    gap = grown(90)
    path.write_text("step,score,gap\n" + "\n".join(f"{t},{0.6 if t < 150 else 0.02},{gap[t]}" for t in T))
    found = diagnose(read_run(path, mapping={"reward": "score", "prob_gap": "gap"}))
    assert found.try_next[0].set == ACTIONS["actions"]["correct"]["words"]


def test_each_cause_has_actions_that_say_why_and_where_that_comes_from() -> None:
    for name, actions in ACTIONS["causes"].items():
        assert set(actions) <= set(ACTIONS["actions"]), name
    for name, action in ACTIONS["actions"].items():
        assert action["why"], name
        assert action["source"], name
        assert set(action.get("unless", ())) <= set(columns())
    named = {cause for one in ACTIONS["causes"] for cause in (one, one.removesuffix(" up").removesuffix(" down"))}
    assert len(named) >= len(CAUSES)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_file_of_settings_is_of_a_trainer_and_names_actions(trainer: str) -> None:
    read = yaml.safe_load((SETTINGS / f"{trainer}.yaml").read_text())
    assert trainer in frameworks()
    assert read["source"]
    assert set(read["settings"]) <= set(ACTIONS["actions"])
    assert set(read.get("default", ())) <= set(ACTIONS["actions"]) - set(read["settings"])


def test_a_state_stands_behind_whatever_moved(tmp_path: Path) -> None:
    silent = {"actor/pg_clipfrac": np.zeros(T.size), "actor/ppo_kl": np.zeros(T.size), STALENESS: 2.0 + 0 * T}
    found = run_of(tmp_path, **silent, **{"actor/entropy": grown(120) * 10})
    assert [one.name for one in found.causes if one.standing == "probable"] == ["entropy", "silent anchor"]
    assert found.causes[0].since > found.causes[1].since
    assert found.try_next[0].set == VERL["halve_rate"]
    assert found.resume_from == 120


def test_without_a_dated_sign_one_resumes_before_the_fall(tmp_path: Path) -> None:
    found = run_of(tmp_path, **{"actor/pg_clipfrac": np.zeros(T.size), STALENESS: 2.0 + 0 * T})
    assert [one.name for one in found.causes if one.standing == "probable"] == ["silent anchor"]
    assert (found.chain, found.resume_from) == ((), found.onset)
    assert f"from the last checkpoint before step {found.onset:g}" in diagnosis_text(found)
    nowhere = replace(found, outcome=replace(found.outcome, onset=math.nan))
    for text in (diagnosis_text(nowhere), diagnosis_page(nowhere)):
        assert "Try next" in text
        assert "nan" not in text


def test_a_loss_that_never_clips_has_no_silent_anchor(tmp_path: Path) -> None:
    logged = {"actor/pg_clipfrac": np.zeros(T.size), "actor/ppo_kl": grown(120), STALENESS: 2.0 + 0 * T}
    found = run_of(tmp_path, **logged, **{"actor/entropy": grown(120) * 10})
    assert "silent anchor" not in [one.name for one in found.causes]
    assert "one optimizer update per batch" not in diagnosis_text(found)
    logged.pop("actor/ppo_kl")
    assert "A loss that never clips, such as SAPO, is logged so as well." in diagnosis_text(run_of(tmp_path, **logged))
