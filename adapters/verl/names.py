"""Names shared by the driver, the workers and the checks."""

from __future__ import annotations

METHOD_MODES = {"vcpo_bench": "sync", "vcpo_bench_colocate_async": "colocate_async"}
"""`trainer.v1.trainer_mode` with a method, and the mode of verl that it extends."""
MONITOR_MODES = {"vcpo_bench_monitor": "sync", "vcpo_bench_monitor_colocate_async": "colocate_async"}
"""The same with verl's own loss and advantage."""

COEFFICIENTS = "vcpo_bench_coefficients"
"""Field of every row: `[T]`."""
ENTROPY_COEFFICIENTS = "vcpo_bench_entropy_coefficients"
"""Field of every row, where the method has an entropy bonus."""
PROXIMAL = "vcpo_bench_proximal"
"""Field of every row: log-probabilities at the first update on the batch, where the method reads them."""
STEP_SCALE = "vcpo_bench_step_scale"
"""Batch-level: multiplier of the learning rate of this optimizer step."""
SKIP = "vcpo_bench_skip"
"""Batch-level: this optimizer step must change nothing."""
SCORE_NORMS = "vcpo_bench_score_norms"
"""Batch-level: scoring returns the squared norm of every row's score, too, as `score_norm_sq`."""
LAST = "vcpo_bench_last"
"""Batch-level: no further optimizer step of this rollout batch follows."""

SAMPLER = ("pkg://vcpo_bench.adapters.verl.lag", "FifoLag")
"""`trainer.v1.sampler.custom_sampler`: path and name."""

LAG_SHARE = "vcpo_bench/lag_share/"
"""In the log, with a lag behind it: share of the trajectories whose oldest token is as many updates old."""
