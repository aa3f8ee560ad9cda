"""Synthetic runs with a planted cause, under our columns, and their export under the names of other trainers."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

Columns = dict[str, np.ndarray]

STEPS, PLANTED, ONSET = 240, 120, 140

VERL = {
    "reward": "critic/score/mean",
    "eval_reward": "val-core/gsm8k/reward/mean@1",
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "length_mean": "response_length/mean",
    "truncated_share": "response_length/clip_ratio",
    "kl_mu_theta_k3": "rollout_corr/k3_kl",
    "prob_gap": "training/rollout_probs_diff_mean",
    "lag_mean": "training/off_policy/trajectory_staleness_worst/mean",
    "lag_max": "training/off_policy/trajectory_staleness_worst/max",
    "ess_ratio": "staleness/ess_ratio",
    "share_clipped": "actor/pg_clipfrac",
    "kl_anchor": "actor/ppo_kl",
    "chi2_seq": "rollout_corr/chi2_seq",
}
NAMES: dict[str, dict[str, str]] = {
    "verl": {ours: theirs for ours, theirs in VERL.items() if ours != "ess_ratio"},
    "vcpo-fork": VERL,
    "trl": {
        "reward": "reward",
        "eval_reward": "eval_reward",
        "entropy": "entropy",
        "grad_norm": "grad_norm",
        "length_mean": "completions/mean_length",
        "truncated_share": "completions/clipped_ratio",
        "zero_variance_share": "frac_reward_zero_std",
        "kl_mu_theta_k3": "kl",
        "lag_mean": "sample/staleness_mean",
        "lag_max": "sample/staleness_max",
    },
    "prime-rl": {
        "reward": "train/agg/all/math/reward/mean",
        "eval_reward": "eval/aime/avg@16",
        "entropy": "entropy/all/mean",
        "grad_norm": "optim/grad_norm",
        "length_mean": "train/agg/all/math/num_output_tokens/mean",
        "truncated_share": "train/agg/all/math/is_truncated/mean",
        "kl_mu_theta_k3": "mismatch_kl/all/mean",
        "lag_mean": "off_policy/mean",
        "lag_max": "off_policy/max",
    },
    "areal": {
        "reward": "ppo_actor/task_reward/avg",
        "eval_reward": "eval-rollout/reward",
        "entropy": "ppo_actor/update/entropy/avg",
        "grad_norm": "ppo_actor/update/grad_norm",
        "length_mean": "ppo_actor/seq_len/avg",
        "kl_mu_theta_k3": "ppo_actor/update/compute_logp/kl_div_dual/avg",
        "lag_mean": "ppo_actor/update/version_stats/sample_staleness_theta_avg",
        "lag_max": "ppo_actor/update/version_stats/sample_staleness_theta_max",
    },
    "skyrl": {
        "reward": "reward/avg_raw_reward",
        "eval_reward": "eval/all/avg_score",
        "entropy": "policy/policy_entropy",
        "grad_norm": "policy/grad_norm",
        "length_mean": "generate/avg_num_tokens",
        "logp_gap": "policy/rollout_train_logprobs_abs_diff_mean",
        "lag_mean": "async/staleness_mean",
        "lag_max": "async/staleness_max",
    },
    "slime": {
        "reward": "rollout/raw_reward",
        "entropy": "train/entropy_loss",
        "grad_norm": "train/grad_norm",
        "length_mean": "rollout/response_len/mean",
        "truncated_share": "rollout/truncated_ratio",
        "logp_gap": "train/train_rollout_logprob_abs_diff",
        "kl_anchor": "train/ppo_kl",
    },
    "openrlhf": {
        "reward": "train/reward",
        "entropy": "train/entropy_loss",
        "grad_norm": "train/actor_grad_norm",
        "length_mean": "train/response_length",
        "kl_mu_theta_k1": "train/vllm_kl",
        "share_clipped": "train/ppo_clip_ratio",
    },
    "nemo-rl": {
        "reward": "train/reward",
        "eval_reward": "validation/accuracy",
        "entropy": "train/approx_entropy",
        "grad_norm": "train/grad_norm",
        "length_mean": "train/mean_gen_tokens_per_sample",
        "kl_mu_theta_k3": "train/gen_kl_error",
        "lag_mean": "train/avg_trajectory_age",
    },
    "pipelinerl": {
        "reward": "rl/reward",
        "entropy": "rl/entropy",
        "grad_norm": "stats/grad_norm",
        "kl_mu_theta_k3": "rl/kl_new_old",
        "token_ess_ratio": "rl/ess",
        "lag_mean": "stats/lag",
    },
    "open-instruct": {
        "reward": "scores",
        "entropy": "policy/entropy_avg",
        "grad_norm": "optim/grad_norm",
        "length_mean": "val/sequence_lengths",
        "logp_gap": "debug/vllm_vs_local_logprob_diff_mean",
        "share_clipped": "policy/clipfrac_avg",
    },
    "tinker-cookbook": {
        "reward": "env/all/reward/total",
        "entropy": "optim/entropy",
        "kl_mu_theta_k1": "optim/kl_sample_train_v1",
    },
}
"""What each framework calls our columns, typed from its documentation and not read from `names.yaml`."""


def planted(cause: str, seed: int = 0) -> Columns:
    """A run of `STEPS` rows in our columns; the cause begins at `PLANTED`, the reward falls from `ONSET` on.

    `healthy` plants nothing.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(STEPS)
    on = t >= PLANTED

    def noisy(level: np.ndarray | float, share: float) -> np.ndarray:
        return np.broadcast_to(level, STEPS) * np.exp(rng.normal(0, share, STEPS))

    alive = 1.0 if cause in ("healthy", "silent anchor") else np.where(t < ONSET, 1.0, np.exp(-(t - ONSET) / 6))
    reward = (0.3 + 0.4 * t / STEPS) * alive
    run: Columns = {
        "reward": np.clip(reward + rng.normal(0, 0.02, STEPS), 0, 1),
        "entropy": noisy(0.8 - 0.2 * t / STEPS, 0.02),
        "grad_norm": noisy(0.4, 0.15),
        "length_mean": noisy(600, 0.03),
        "truncated_share": np.clip(rng.normal(0.03, 0.01, STEPS), 0, 1),
        "zero_variance_share": np.clip(rng.normal(0.3, 0.04, STEPS), 0, 1),
        "kl_mu_theta_k1": noisy(0.002, 0.1),
        "kl_mu_theta_k3": noisy(0.002, 0.1),
        "prob_gap": noisy(0.004, 0.1),
        "logp_gap": noisy(0.01, 0.1),
        "lag_mean": np.full(STEPS, 2.0) + rng.normal(0, 0.1, STEPS),
        "lag_max": np.full(STEPS, 4.0),
        "ess_ratio": np.clip(rng.normal(0.9, 0.01, STEPS), 0, 1),
        "token_ess_ratio": np.clip(rng.normal(0.98, 0.002, STEPS), 0, 1),
        "share_clipped": np.clip(rng.normal(0.02, 0.004, STEPS), 0.001, 1),
        "kl_anchor": noisy(0.001, 0.1),
        "chi2_seq": noisy(0.15, 0.1),
    }
    evaluations = np.full(STEPS, np.nan)
    evaluations[::10] = np.clip(reward + rng.normal(0, 0.01, STEPS), 0, 1)[::10]
    run["eval_reward"] = evaluations
    _plant(cause, run, on, t, rng)
    return run


def _plant(cause: str, run: Columns, on: np.ndarray, t: np.ndarray, rng: np.random.Generator) -> None:
    def raise_to(column: str, level: float) -> None:
        run[column] = np.where(on, level * np.exp(rng.normal(0, 0.05, STEPS)), run[column])

    if cause == "lag and weights":
        for column, level in (("lag_mean", 30), ("lag_max", 64), ("kl_mu_theta_k1", 0.08), ("kl_mu_theta_k3", 0.08)):
            raise_to(column, level)
        raise_to("ess_ratio", 0.1)
        raise_to("token_ess_ratio", 0.6)
    elif cause == "engine gap":
        run["lag_mean"], run["lag_max"] = np.zeros(STEPS), np.zeros(STEPS)
        for column, level in (("logp_gap", 0.3), ("prob_gap", 0.2), ("kl_mu_theta_k3", 0.08), ("kl_mu_theta_k1", 0.08)):
            raise_to(column, level)
    elif cause == "truncation and length":
        run["length_mean"] = np.where(on, 600 * np.exp((t - PLANTED) / 15).clip(max=6.0), run["length_mean"])
        run["truncated_share"] = np.where(on, np.clip((t - PLANTED) / 20, 0.05, 0.9), run["truncated_share"])
    elif cause == "entropy":
        run["entropy"] = np.where(on, run["entropy"] * np.exp(-(t - PLANTED) / 8), run["entropy"])
    elif cause == "gradient or non-finite":
        run["grad_norm"] = np.where(t >= ONSET - 2, np.nan, np.where(on, 40.0, run["grad_norm"]))
        run["reward"] = np.where(t >= ONSET, np.nan, run["reward"])
        run["eval_reward"] = np.where(t >= ONSET, np.nan, run["eval_reward"])
    elif cause == "zero-variance groups":
        raise_to("zero_variance_share", 0.93)
    elif cause == "silent anchor":
        run["share_clipped"], run["kl_anchor"] = np.zeros(STEPS), np.zeros(STEPS)
        raise_to("kl_mu_theta_k3", 0.08)
    elif cause == "lost support":
        run["chi2_seq"] = np.where(on, -0.95, run["chi2_seq"])
        raise_to("kl_mu_theta_k3", 15.0)
        raise_to("prob_gap", 0.81)


def rows_of(run: Mapping[str, np.ndarray], framework: str) -> list[dict[str, float]]:
    """One row per step under the names of a framework; an evaluation that is missing is left out."""
    names = NAMES[framework]
    rows = []
    for step in range(STEPS):
        row = {theirs: float(run[ours][step]) for ours, theirs in names.items()}
        if "eval_reward" in names and step % 10:
            del row[names["eval_reward"]]
        rows.append(row)
    return rows


def write_jsonl(path: Path, rows: list[dict[str, float]], first: int = 0) -> Path:
    """Rows with their step, one JSON object per line."""
    lines = [json.dumps({"step": first + number, **row}) for number, row in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def event(step: int, tag: str, value: float) -> bytes:
    """A TensorBoard record with one scalar."""
    entry = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(entry)]) + entry
    data = b"\x09" + struct.pack("<d", 1.0) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    return struct.pack("<QI", len(data), 0) + data + struct.pack("<I", 0)
