"""What each trainer logs today fills our columns: names typed from its sources, not from `frameworks/`."""

import json
from pathlib import Path

import pytest

from vcpo_bench.analysis.logs import read_run

MARKS = {
    "slime": {"rollout/raw_reward": 0.5, "train/pg_clipfrac": 0.1},
    "nemo-rl": {"train/reward": 0.5, "train/gen_kl_error": 0.01},
    "areal": {"ppo_actor/task_reward/avg": 0.5},
    "openrlhf": {"train/reward": 0.5, "train/actor_grad_norm": 0.1},
    "verl": {"critic/score/mean": 0.5, "actor/pg_loss": 0.1},
    "skyrl": {"reward/avg_raw_reward": 0.5},
    "trl": {"reward": 0.5, "frac_reward_zero_std": 0.1},
    "roll": {"critic/score/mean": 0.5, "actor/pg_loss": 0.1, "actor_train/grad_norm": 0.2},
}


def series_of(folder: Path, trainer: str, row: dict[str, float]) -> dict[str, tuple[float, str]]:
    """The value and the tag of each column, of a log that is recognized."""
    file = folder / "metrics.jsonl"
    file.write_text("".join(json.dumps({"step": t, **MARKS[trainer], **row}) + "\n" for t in range(2)))
    run = read_run(file)
    assert run.framework == trainer
    return {name: (round(float(one.values[0]), 9), one.source.tag) for name, one in run.series.items()}


@pytest.mark.parametrize(
    ("trainer", "name", "column", "value", "tag"),
    [
        ("slime", "train/kl_loss", "kl_reference", 0.25, "other"),
        ("slime", "train/opsm_clipfrac", "share_masked", 0.25, "other"),
        ("nemo-rl", "train/kl_penalty", "kl_reference", 0.25, "other"),
        ("nemo-rl", "train/is_oob_ratio", "share_masked", 0.25, "other"),
        ("areal", "ppo_actor/update/actor_loss/avg", "loss", 0.25, "exact"),
        ("areal", "ppo_actor/no_eos_ratios/avg", "truncated_share", 0.25, "proxy"),
        ("areal", "ppo_actor/update/logp_abs_diff/avg", "logp_gap", 0.25, "other"),
        ("areal", "ppo_actor/update/behave_filtered_ratio/avg", "share_masked", 0.25, "exact"),
        ("areal", "ppo_actor/update/rs_filtered_fraction", "share_masked", 0.25, "other"),
        ("openrlhf", "train/is_filter_ratio", "share_masked", 0.25, "other"),
        ("verl", "actor/reward_kl_penalty", "kl_reference", 0.25, "other"),
        ("skyrl", "loss/avg_kl", "kl_reference", 0.25, "other"),
        ("trl", "entropy/mean", "entropy", 0.25, "exact"),
        ("trl", "rollout_correction/kl", "kl_mu_theta_k1", 0.25, "exact"),
        ("trl", "rollout_correction/k3_kl", "kl_mu_theta_k3", 0.25, "exact"),
        ("trl", "rollout_correction/chi2_token", "chi2_token", 0.25, "exact"),
        ("trl", "rollout_correction/is_weight_mean", "weight_mean", 0.25, "truncated"),
        ("roll", "val_correct/all/mean", "eval_reward", 0.25, "exact"),
        ("roll", "val/score/mean", "eval_reward", 0.25, "exact"),
        ("roll", "critic/entropy/mean", "entropy", 0.25, "exact"),
        ("roll", "actor/policykl", "kl_anchor", -0.25, "other"),
        ("roll", "actor/kl_loss", "kl_reference", 0.25, "other"),
        ("roll", "token/response_length/mean", "length_mean", 0.25, "exact"),
        ("roll", "tokens/response_length/mean", "length_mean", 0.25, "exact"),
        ("roll", "actor/train_infer_final_mask_mean", "share_masked", 0.75, "exact"),
        ("roll", "group/mixed_groups_ratio", "zero_variance_share", 0.75, "proxy"),
        ("roll", "math_rule/scheduler/off_policy_ratio", "lag_mean", 0.25, "exact"),
        ("roll", "time/step_total", "seconds", 0.25, "exact"),
    ],
)
def test_a_name_fills_a_column(tmp_path: Path, trainer: str, name: str, column: str, value: float, tag: str) -> None:
    assert column not in series_of(tmp_path, trainer, {})
    assert series_of(tmp_path, trainer, {name: 0.25})[column] == (value, tag)


def test_the_ratio_of_nemo_is_truncated_only_where_a_truncated_correction_is_on(tmp_path: Path) -> None:
    ratio = {"train/sampling_importance_ratio": 1.5}
    assert series_of(tmp_path, "nemo-rl", ratio)["weight_mean"] == (1.5, "exact")
    assert series_of(tmp_path, "nemo-rl", {**ratio, "train/is_oob_ratio": 0.1})["weight_mean"] == (1.5, "truncated")


def test_the_ratio_of_roll_is_a_weight_only_where_it_weighs(tmp_path: Path) -> None:
    ratio = {"actor/train_infer_ratio_token_mean": 1.25}
    assert "weight_mean" not in series_of(tmp_path, "roll", ratio)
    assert series_of(tmp_path, "roll", {**ratio, "actor/is_weight_clipfrac": 0.0})["weight_mean"] == (1.25, "exact")


ROLL_LINE = "[2026-11-20 10:11:12] [tracking.py (151)] [INFO] [DRIVER 0 / 1][PID 123] "
ROLL_ROW = {
    "critic/score/mean": 0.5,
    "critic/advantages/mean": 0.0,
    "actor/pg_loss@sum": 0.1,
    "actor/ppo_ratio_clipfrac@sum": 0.01,
    "actor/kl_loss@sum": 0.002,
    "actor_train/grad_norm": 0.2,
    "critic/entropy/mean": 0.8,
}


def test_the_console_of_roll_is_read_as_a_tracker_and_as_json(tmp_path: Path) -> None:
    """Its tracker strips what follows `@` and names the step; the line of JSON does neither."""
    tracker, line = tmp_path / "tracker.log", tmp_path / "json.log"
    stripped = {name.partition("@")[0]: value for name, value in ROLL_ROW.items()}
    rows = [json.dumps({"step": t, "metrics": stripped}) for t in range(10, 14)]
    tracker.write_text("".join(f"{ROLL_LINE}metrics_tag: {row}\n" for row in rows))
    rows = [json.dumps({**ROLL_ROW, "system/global_step": t}) for t in range(10, 14)]
    line.write_text("".join(f"{ROLL_LINE}{row}\n{ROLL_LINE}pipeline step 1 finished\n" for row in rows))
    for file in (tracker, line):
        run = read_run(file)
        assert run.framework == "roll"
        assert {"reward", "loss", "share_clipped", "kl_reference", "grad_norm", "entropy"} <= set(run.series)
        assert run.series["loss"].values.tolist() == [0.1] * 4
        assert run.series["reward"].steps.tolist() == [10, 11, 12, 13]
    both = tmp_path / "both.log"
    both.write_text("".join(map("".join, zip(_lines(tracker), _lines(line)[::2], strict=True))))
    run = read_run(both)
    assert (run.resumes, run.series["reward"].steps.tolist()) == ((), [10, 11, 12, 13])


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines(keepends=True)


@pytest.mark.parametrize("row", [{}, {"actor/entropy": 0.5}, {"actor/ppo_kl": 0.0, "training/global_step": 3}])
def test_what_verl_shares_with_roll_is_still_verl(tmp_path: Path, row: dict[str, float]) -> None:
    assert series_of(tmp_path, "verl", {"critic/advantages/mean": 0.0, "actor/lr": 1e-6, **row})


@pytest.mark.parametrize(
    ("title", "step"),
    [("✨ Evaluation completed in 0:01:02, global_step {}, eval_metrics", "Global step {}"), ("Eval at step {}",) * 2],
)
def test_evaluations_in_the_console_of_openrlhf_are_at_the_steps_of_training(
    tmp_path: Path, title: str, step: str
) -> None:
    ray = "(PPOTrainer pid=88) INFO 11-20 10:11:12 ppo_trainer.py:598] "
    lines = []
    for t in range(1, 36):
        lines.append(f"{ray}✨ Global step {t}: {{'actor_lr': 1e-06, 'reward': 0.3, 'vllm_kl': 0.001}}")
        if t in (10, 20):
            evaluated = {"eval_gsm8k_pass4": 0.9, "eval_gsm8k_pass1": t / 100, "eval_gsm8k_response_length_mean": 333.0}
            lines.append(f"{ray}{title.format(t)}: {evaluated}")
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines))
    run = read_run(log)
    assert run.framework == "openrlhf"
    assert (run.series["eval_reward"].steps.tolist(), run.series["eval_reward"].values.tolist()) == (
        [10, 20],
        [0.1, 0.2],
    )
    assert run.last_step == 35
    assert not run.notes


def test_the_steps_of_evaluations_in_the_tracker_of_openrlhf_are_those_of_training(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = []
    for t in range(1, 36):
        rows.append({"_step": len(rows), "train/global_step": t, "train/actor_lr": 1e-6, "train/reward": 0.3})
        if t > 10 and (t - 1) % 10 == 0:  # asynchronous: the evaluation of a step is logged after the next one
            rows.append({"_step": len(rows), "eval/global_step": t - 1, "eval/eval_gsm8k_pass1": 0.5})
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    run = read_run(file)
    assert run.series["eval_reward"].steps.tolist() == [10, 20, 30]
    assert run.last_step == 35
    assert (run.step_name, run.notes, run.resumes) == ("train/global_step", (), ())


@pytest.mark.parametrize(
    "value",
    [
        "tensor(0.25, device='cuda:0')",
        "tensor(0.25, device='cuda:0', dtype=torch.float64)",
        "tensor(0.25, grad_fn=<MeanBackward0>)",
        "tensor(0.25)",
        "np.float64(0.25)",
        "'0.25'",
        "0.25",
    ],
)
def test_a_tensor_in_a_dictionary_is_a_number(tmp_path: Path, value: str) -> None:
    log = tmp_path / "train.log"
    rows = [f"{{'reward': {value}, 'reward_std': {value}, 'loss': {t}.5, 'step': {t}}}" for t in range(3)]
    log.write_text("\n".join(rows))
    series = read_run(log).series
    assert series["reward"].values.tolist() == series["reward_std"].values.tolist() == [0.25] * 3
    assert series["loss"].values.tolist() == [0.5, 1.5, 2.5]
