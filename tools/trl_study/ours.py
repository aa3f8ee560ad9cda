"""One arm in our own harness."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from settings import EVAL_EVERY, Arm, Run, success

from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records import STEPS_FILE

KEPT = ("ess_ratio", "step_scale", "grad_norm", "lag_mean", "lag_max")


def train(arm: Arm, start: Path, keep_weights: bool = False) -> Run:
    """Train one arm from the policy in `start`.

    Args:
        arm: What to train.
        start: Folder of the start policy.
        keep_weights: Keep all weights after each update and each batch.
    """
    began = perf_counter()
    trainer = build_trainer(arm.config(), start=start)
    task = trainer.task
    assert isinstance(task, BoundTask)
    run = Run(evals=[(0, success(trainer.policy, task))])
    if keep_weights:
        _keep_batches(trainer, run)
    while not trainer.status:
        trainer.advance()
        row = trainer.recorder.tables[STEPS_FILE].row(-1)
        values = {name: float(row[name]) for name in KEPT}
        run.updates.append({"update": float(trainer.step), "batch_reward": float(row["sampled_reward"]), **values})
        if keep_weights:
            run.weights.append(flat(trainer.policy.parameters()))
        if trainer.step % EVAL_EVERY == 0:
            run.evals.append((trainer.step, success(trainer.policy, task)))
    run.seconds = perf_counter() - began
    return run


def flat(parameters: Any) -> torch.Tensor:
    """`[D]` a copy of all weights, in their order."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def _keep_batches(trainer: Trainer, run: Run) -> None:
    """Keep every batch that the policy samples for training; only evaluations have greedy rows."""
    sample = trainer.policy.sample

    def keeping(prompts: Any, uniforms: Any, eos: Any = None, greedy: Any = None) -> Any:
        rollout = sample(prompts, uniforms, eos, greedy)
        if greedy is None:
            run.batches.append(rollout)
        return rollout

    trainer.policy.sample = keeping  # type: ignore[method-assign]
