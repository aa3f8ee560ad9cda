"""What a run writes and every reader relies on: the layout of a results folder and the columns of its tables.

`results/<name>/` holds `grid.json` (which cells were asked for, which are controls) and `cells/<key>/` (ended) or
`cells/<key>.partial/` (running or interrupted). An ended cell holds `cell.json` and the tables below as Parquet.
`scores/<key>.parquet` holds what was measured on its kept checkpoints later.
Neither torch nor pandas is imported here, so that every room can read this page.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

RULES_VERSION = "1.0"
"""Results are comparable within one version of the rules; every cell records the one it ran under."""

CELLS = "cells"
PARTIAL_SUFFIX = ".partial"
CELL_FILE = "cell.json"
GRID_FILE = "grid.json"
STEPS_FILE = "steps.parquet"
EVALS_FILE = "evals.parquet"
LAGS_FILE = "lags.parquet"
EVENTS_FILE = "events.parquet"
SAMPLES_FILE = "samples.parquet"
EPISODES_FILE = "episodes.parquet"
PROBES_FOLDER = "probes"
"""In a results folder: `<key>.parquet` for each cell that was probed (`vcpo-bench probe`), with `PROBES`."""
SCORES_FOLDER = "scores"
"""Holds `<key>.parquet` for each cell that `vcpo-bench eval` scored: an ended cell's own folder never changes."""

Status = Literal["completed", "nan", "stopped_by", "error"]
"""How a cell ended. `nan`: three updates in a row were not finite. Collapse is a judgment of `analysis`."""

Level = Literal["basic", "diagnostics", "full"]
"""How much is recorded; each level contains the one before."""

Kind = Literal["int", "float", "bool", "str"]


class Column(NamedTuple):
    """One column of a table: its name, storage kind, unit, the record level that writes it, and its meaning."""

    name: str
    kind: Kind
    unit: str
    level: Level
    meaning: str


STEPS: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "index t of the update that turns theta_t into theta_{t+1}, from 0"),
    Column(
        "sampled_reward",
        "float",
        "reward",
        "basic",
        "mean reward of the newest complete batch: with fifo, the one theta_t itself sampled at this step",
    ),
    Column("batch_reward", "float", "reward", "basic", "mean reward of the batch this update consumed"),
    Column(
        "ess_ratio", "float", "1/n..1", "basic", "Kish ESS of the raw sequence weights over the trajectories consumed"
    ),
    Column(
        "ess_ratio_used",
        "float",
        "1/n..1",
        "basic",
        "the same of the weights the method really applied; null: no weight",
    ),
    Column("log_weight_max", "float", "nats", "basic", "largest sequence log-weight log pi(y|x) - log mu(y|x)"),
    Column("log_weight_q05", "float", "nats", "basic", "5% quantile of the sequence log-weights"),
    Column("log_weight_q25", "float", "nats", "basic", "25% quantile"),
    Column("log_weight_q50", "float", "nats", "basic", "median"),
    Column("log_weight_q75", "float", "nats", "basic", "75% quantile"),
    Column("log_weight_q95", "float", "nats", "basic", "95% quantile"),
    Column("log_weight_var", "float", "nats^2", "basic", "population variance of the sequence log-weights"),
    Column(
        "kl_mu_theta_k1",
        "float",
        "nats/token",
        "basic",
        "KL(mu || theta), estimator k1: mean of -l, l = log pi - log mu",
    ),
    Column("kl_mu_theta_k3", "float", "nats/token", "basic", "KL(mu || theta), estimator k3: mean of e^l - 1 - l"),
    Column("entropy", "float", "nats/token", "basic", "mean entropy of the current policy on the consumed tokens"),
    Column("grad_norm", "float", "l2", "basic", "norm of the whole gradient before clipping"),
    Column("grad_norm_clipped", "float", "l2", "basic", "norm after clipping"),
    Column("step_scale", "float", "factor", "basic", "the method's multiplier of the learning rate"),
    Column("lr", "float", "1", "basic", "learning rate of this step: base x step_scale"),
    Column(
        "share_clipped", "float", "0..1", "basic", "share of tokens whose weight or surrogate was clipped or capped"
    ),
    Column("share_masked", "float", "0..1", "basic", "share of tokens that a mask removed"),
    Column("lag_min", "int", "updates", "basic", "smallest lag of a trajectory's oldest token"),
    Column("lag_mean", "float", "updates", "basic", "mean lag over tokens"),
    Column("lag_max", "int", "updates", "basic", "largest lag of a trajectory's oldest token"),
    Column("version_oldest", "int", "updates", "basic", "oldest version among the consumed tokens"),
    Column("version_newest", "int", "updates", "basic", "newest version among the consumed tokens"),
    Column("version_mean", "float", "updates", "basic", "mean version of the consumed tokens"),
    Column("filling", "bool", "yes/no", "basic", "the pipeline is still filling: the lag is bounded by the run's age"),
    Column("length_mean", "float", "tokens", "basic", "mean number of loss-carrying tokens of a consumed trajectory"),
    Column(
        "nonfinite",
        "str",
        "field",
        "basic",
        "field of the evidence that was not finite (the step was skipped), or empty",
    ),
    Column("seconds_sample", "float", "s", "basic", "sampling of the batch of this step"),
    Column("seconds_score", "float", "s", "basic", "forward passes of the learner"),
    Column("seconds_update", "float", "s", "basic", "coefficients, backward passes and optimizer"),
    Column("seconds_record", "float", "s", "basic", "metrics and recording"),
    Column("seconds_wait", "float", "s", "basic", "async: the learner waited for its batch"),
    Column(
        "seconds_in_flight", "float", "s", "basic", "async: mean time from start to delivery of the consumed groups"
    ),
    Column("seconds_in_queue", "float", "s", "basic", "async: mean time from delivery to this update"),
    Column("queued", "int", "groups", "basic", "async: delivered and not consumed when this update begins"),
    Column("in_flight", "int", "groups", "basic", "async: started or about to, and not delivered"),
    Column("dropped", "int", "groups", "basic", "async: given up as too old since the update before"),
    Column("sampler_busy", "float", "0..1", "basic", "async: share of the sampler's slots that worked since then"),
    Column(
        "token_ess_ratio", "float", "1/n..1", "diagnostics", "Kish ESS of the token ratios over the tokens consumed"
    ),
    Column("grad_cosine", "float", "-1..1", "diagnostics", "cosine of this gradient and the previous one"),
    Column("head_grad_norm", "float", "l2", "diagnostics", "gradient norm of the output head alone"),
)

EVALS: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "updates applied before this evaluation; 0 is the start policy"),
    Column("greedy_reward", "float", "reward", "basic", "mean reward of argmax decoding on the held-out prompts"),
    Column("sampled_reward", "float", "reward", "basic", "mean reward of one sample per held-out prompt"),
    Column("entropy", "float", "nats/token", "basic", "mean entropy of the policy on its own held-out samples"),
    Column("seconds", "float", "s", "basic", "time of the evaluation"),
)

LAGS: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "update that consumed the trajectories"),
    Column("lag", "int", "updates", "basic", "update minus the version that sampled the trajectory's oldest token"),
    Column("trajectories", "int", "count", "basic", "how many consumed trajectories had that lag"),
    Column("tokens", "int", "count", "basic", "how many consumed tokens had that lag themselves"),
)

SAMPLES: tuple[Column, ...] = (
    Column("step", "int", "updates", "diagnostics", "update that consumed the trajectory"),
    Column("batch", "int", "index", "diagnostics", "index of the sampled batch"),
    Column("trajectory", "int", "index", "diagnostics", "index of the trajectory within its batch"),
    Column("prompt", "int", "index", "diagnostics", "index of its prompt (group) within its batch"),
    Column("reward", "float", "reward", "diagnostics", "scalar reward"),
    Column("length", "int", "tokens", "diagnostics", "tokens that carry loss"),
    Column("log_weight", "float", "nats", "diagnostics", "log pi_theta(y|x) - log mu(y|x)"),
    Column("kl_k3", "float", "nats/token", "diagnostics", "mean of e^l - 1 - l over its tokens"),
    Column("version_oldest", "int", "updates", "diagnostics", "version that sampled its oldest token"),
    Column("version_newest", "int", "updates", "diagnostics", "version that sampled its newest token"),
    Column("seconds_in_flight", "float", "s", "diagnostics", "async: time from its start to its delivery"),
    Column("seconds_in_queue", "float", "s", "diagnostics", "async: time from its delivery to the update"),
    Column("coefficient_sum", "float", "1", "diagnostics", "sum of the method's coefficients over its tokens"),
    Column("score_norm_sq", "float", "l2^2", "full", "||grad log pi(y|x)||^2"),
    Column("log_ratios", "str", "nats", "full", "per-token log-ratios as a JSON list"),
)

EPISODES: tuple[Column, ...] = (
    Column("step", "int", "updates", "diagnostics", "updates applied before the evaluation that sampled it"),
    Column("prompt", "int", "index", "diagnostics", "index of the held-out prompt"),
    Column("text", "str", "text", "diagnostics", "prompt and response as the task writes them"),
    Column("reward", "float", "reward", "diagnostics", "scalar reward"),
)
"""The first few held-out prompts with what the policy sampled, the same prompts and noise at every evaluation."""

EVENTS: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "update that was due"),
    Column(
        "event",
        "str",
        "name",
        "basic",
        "dropped_in_queue, dropped_in_flight, duplicate, late, nonfinite, sampler_died, sampler_hung, "
        "sampler_did_not_start",
    ),
    Column("batch", "int", "index", "basic", "batch of the group it concerns"),
    Column("group", "int", "index", "basic", "the group within its batch"),
    Column("lag", "int", "updates", "basic", "the update minus the version the group was sampled by"),
    Column("length", "float", "tokens", "basic", "mean length of its responses"),
    Column("reward", "float", "reward", "basic", "mean reward of its responses"),
    Column("detail", "str", "text", "basic", "what else there is to say"),
)
"""Only where the regime is `async`. Times of a virtual clock are in its units."""

PROBES: tuple[Column, ...] = (
    Column("key", "str", "name", "basic", "cell that was probed"),
    Column("method", "str", "expression", "basic", "method whose update u is measured; truth: the gradient itself"),
    Column("step", "int", "updates", "basic", "updates done at the checkpoint theta_t"),
    Column("lag", "int", "updates", "basic", "t minus the version of the policy that sampled; 0: fresh data"),
    Column(
        "preconditioned",
        "bool",
        "yes/no",
        "basic",
        "u and g divided by the square root of AdamW's second moment, u clipped before; else u = step scale x gradient",
    ),
    Column(
        "quantity",
        "str",
        "name",
        "basic",
        "signal_sq |E u|^2; variance tr Var u; snr signal_sq/variance; snr_along <E u, g>^2/(|g|^2 variance); "
        "snr_ratio and snr_along_ratio: over those of the first method; gain <E u, g>/|g|^2; "
        "bias_sq |E u - g|^2/|g|^2; cosine_of_mean cos(E u, g); cosine E cos(u, g); "
        "cosine_back cos(E u, theta_t - theta_mu), positive where the step -u goes back to mu; step_scale E s; "
        "scale_norm_correlation of s and the gradient's norm",
    ),
    Column("value", "float", "see quantity", "basic", "estimate; null: not defined"),
    Column("low", "float", "see quantity", "basic", "lower end of the 95% bootstrap interval"),
    Column("high", "float", "see quantity", "basic", "upper end"),
    Column("n", "int", "batches", "basic", "independent batches that u was measured on"),
    Column("fresh", "int", "batches", "basic", "independent on-policy batches that g was estimated from"),
)
"""Definitions and equations: docs/probe_and_fork.md."""

SCORES: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "updates applied before the checkpoint that was scored"),
    Column("task", "str", "name", "basic", "task or group of lm-eval"),
    Column("task_version", "str", "version", "basic", "version the task gives itself"),
    Column("metric", "str", "name", "basic", "metric of the task"),
    Column("filter", "str", "name", "basic", "what lm-eval did to the responses before; none: nothing"),
    Column("value", "float", "metric", "basic", "aggregated over the documents"),
    Column("stderr", "float", "metric", "basic", "standard error over documents; null: lm-eval gives none"),
    Column("higher_is_better", "bool", "yes/no", "basic", "null: the task does not say"),
    Column("n", "int", "documents", "basic", "documents scored; null for a group"),
    Column("shots", "int", "examples", "basic", "worked examples in front of each document"),
    Column("lm_eval", "str", "version", "basic", "version of lm-eval"),
)
"""Scores of kept checkpoints by lm-eval, in `scores/<key>.parquet`; scoring a task again replaces its rows."""
