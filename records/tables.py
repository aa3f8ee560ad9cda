"""The columns of every recorded table but `steps.parquet`, whose columns `records.steps` lists."""

from vcpo_bench.records.column import Column

EVALS: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "updates applied before this evaluation; 0 is the start policy"),
    Column("greedy_reward", "float", "reward", "basic", "mean reward of argmax decoding on the held-out prompts"),
    Column("sampled_reward", "float", "reward", "basic", "mean reward of one sample per held-out prompt"),
    Column("sampled_reward_easy", "float", "reward", "basic", "the same over the easy half, where the task has one"),
    Column("sampled_reward_hard", "float", "reward", "basic", "the same over the hard half, where the task has one"),
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
    Column("turns", "int", "turns", "diagnostics", "environment: turns of the policy"),
    Column("calls", "int", "turns", "diagnostics", "environment: turns that were a call it carried out"),
    Column("malformed_calls", "int", "turns", "diagnostics", "environment: turns that were an unreadable call"),
    Column("void_turns", "int", "turns", "diagnostics", "environment: turns that were neither call nor answer"),
    Column("observed", "int", "tokens", "diagnostics", "environment: tokens it inserted, which carry no loss"),
    Column("truncated", "int", "0 or 1", "diagnostics", "environment: the response ran out of tokens"),
    Column("turn_limited", "int", "0 or 1", "diagnostics", "environment: the episode ran out of turns"),
    Column("coefficient_sum", "float", "1", "diagnostics", "sum of the method's coefficients over its tokens"),
    Column("score_norm_sq", "float", "l2^2", "full", "||grad log pi(y|x)||^2"),
    Column("log_ratios", "str", "nats", "full", "per-token log-ratios as a JSON list"),
)

EPISODES: tuple[Column, ...] = (
    Column("step", "int", "updates", "basic", "updates applied before the evaluation that sampled it"),
    Column("prompt", "int", "index", "basic", "index of the held-out prompt"),
    Column("text", "str", "text", "basic", "prompt and response as the task writes them"),
    Column("reward", "float", "reward", "basic", "scalar reward"),
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

LM_EVAL_SCORES: tuple[Column, ...] = (
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
