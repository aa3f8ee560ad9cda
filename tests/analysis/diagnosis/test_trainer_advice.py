"""Advice in the settings of a trainer: what it can start with, and what its log shows to be on already."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import yaml

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose
from vcpo_bench.analysis.diagnosis.try_next import SETTINGS
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.logs.names import FRAMEWORKS, columns

T = np.arange(200)
FALL = np.where(T < 150, 0.6, 0.02)
GROWN = 0.01 * np.where(T < 90, 1.0, 10.0) + 1e-4 * np.sin(T)
ONE = np.ones(T.size)


def diagnosed(folder: Path, logged: Mapping[str, np.ndarray]) -> Diagnosis:
    file = folder / "metrics.jsonl"
    rows = ({"step": int(t), **{name: float(values[t]) for name, values in logged.items()}} for t in T)
    file.write_text("\n".join(map(json.dumps, rows)))
    return diagnose(read_run(file))


def setting(trainer: str, action: str) -> str:
    return str(yaml.safe_load((SETTINGS / f"{trainer}.yaml").read_text())["settings"][action])


def advised(found: Diagnosis) -> list[str]:
    return [one.set for one in found.try_next]


NEMO = {"train/reward": FALL, "train/gen_kl_error": GROWN, "train/sampling_importance_ratio": ONE}
MASK = "loss_fn.truncated_importance_sampling_type=seq-mask-tis"


def test_nemo_masks_only_with_the_correction_that_its_mask_needs(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, NEMO)
    assert advised(found)[0] == "loss_fn.use_importance_sampling_correction=true"
    (mask,) = [one for one in advised(found) if MASK in one]
    for other in ("use_importance_sampling_correction=true", "_ratio=1.002", "_ratio_min=0.999"):
        assert other in mask


def test_the_correction_of_nemo_is_on_where_it_counts_what_is_out_of_bounds(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {**NEMO, "train/is_oob_ratio": 0.01 * ONE})
    assert advised(found)
    assert setting("nemo-rl", "correct") not in advised(found)


def test_openrlhf_logs_its_gap_only_with_the_correction(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, {"train/reward": FALL, "train/actor_lr": ONE, "train/vllm_kl": GROWN})
    assert setting("openrlhf", "correct") not in advised(found)
    assert setting("openrlhf", "mask_far") in advised(found)
    assert not any("no correction shows" in one.why for one in found.try_next)


SKYRL = {"reward/avg_raw_reward": FALL, "policy/loss_metrics/clip_ratio": 0.01 * ONE, "async/staleness_mean": ONE}
AHEAD = "policy/rollout_train_logprobs_abs_diff_mean"
MINIBATCH = "policy/minibatch_rollout_logprobs_abs_diff_mean"


@pytest.mark.parametrize(("gaps", "corrects"), [([MINIBATCH], True), ([AHEAD], False), ([AHEAD, MINIBATCH], False)])
def test_a_loss_of_skyrl_that_skips_the_forward_pass_corrects_itself(
    tmp_path: Path, gaps: list[str], corrects: bool
) -> None:
    found = diagnosed(tmp_path, {**SKYRL, **dict.fromkeys(gaps, GROWN)})
    assert found.causes[0].name == "engine gap"
    assert (setting("skyrl", "correct") not in advised(found)) == corrects
    assert len(advised(found)) >= 3


ROLL = {
    "critic/score/mean": FALL,
    "actor/pg_loss": ONE,
    "actor_train/grad_norm": ONE,
    "math/scheduler/off_policy_ratio": 50 * GROWN,
}


@pytest.mark.parametrize("on", [True, False])
def test_the_correction_of_roll_is_on_where_it_logs_the_share_it_clips(tmp_path: Path, on: bool) -> None:
    ratio = {"actor/train_infer_ratio_token_mean": ONE}
    found = diagnosed(tmp_path, ROLL | ratio | ({"actor/is_weight_clipfrac": 0 * ONE} if on else {}))
    assert found.run.framework == "roll"
    assert (setting("roll", "correct") in advised(found)) != on


DEAD = {
    "areal": ["behav_imp_weight_cap", "behave_imp_weight_cap"],
    "verl": ["actor.grad_clip"],
}
"""Keys that the version named in the file does not have, or does not read."""


def printed(trainer: str) -> str:
    settings, names = (yaml.safe_load((folder / f"{trainer}.yaml").read_text()) for folder in (SETTINGS, FRAMEWORKS))
    return " ".join([settings.get("resume", ""), *settings["settings"].values(), *names["switches"].values()])


@pytest.mark.parametrize("trainer", DEAD)
def test_no_key_is_printed_that_the_trainer_no_longer_has(trainer: str) -> None:
    assert [key for key in DEAD[trainer] if key in printed(trainer)] == []


def test_each_flag_of_openrlhf_has_the_section_that_its_command_line_has_now() -> None:
    flags = re.findall(r"--(\S+)", printed("openrlhf"))
    sections = {"actor", "algo", "ckpt", "eval", "reward", "rollout", "train"}
    assert len(flags) > 20
    assert [flag for flag in flags if flag.partition(".")[0] not in sections or "." not in flag] == []


def test_what_shows_that_an_action_is_done_is_a_column_or_a_name_that_fills_one() -> None:
    actions = yaml.safe_load((SETTINGS / "actions.yaml").read_text())["actions"]
    for file in SETTINGS.glob("*.yaml"):
        for action, shown in yaml.safe_load(file.read_text()).get("unless", {}).items():
            assert action in actions
            trainer = yaml.safe_load((FRAMEWORKS / file.name).read_text())
            assert set(shown) <= {*columns(), *(name for name, *_ in trainer["names"])}, file.name
