"""What both sides of the study are told, and what one run hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.trajectories import Rollout

METHODS = ("tis", "vcpo", "clip", "vespo")
LAGS = (0, 8, 32)
SEEDS = (0, 1, 2, 3, 4)
UPDATES, PROMPTS, RESPONSES = 200, 8, 8
EVAL_EVERY = 10
"""Updates between two measurements of the success probability."""
LEARNING_RATE = 3e-4
"""Of both sides, constant."""
TASK = "arithmetic(largest=9,terms=2)"
NEW_MODEL, WARM_REWARD, MODEL_SEED = "llama(100k)", 0.3, 0
EXACT_UPDATES, EXACT_SEED = 40, 0
"""Updates and seed of the runs whose weights are compared after every update."""


@dataclass(frozen=True)
class Arm:
    """One method at one lag with one seed.

    Attributes:
        method: Method expression.
        lag: Updates that data wait.
        seed: Of prompts and sampling.
        updates: Optimizer updates.
    """

    method: str
    lag: int
    seed: int
    updates: int = UPDATES

    def config(self) -> CellConfig:
        """The same as a cell of our harness."""
        return CellConfig(
            method=self.method,
            staleness=self.lag,
            seed=self.seed,
            task=TASK,
            model="start@0",
            lr=LEARNING_RATE,
            lr_warmup=0,
            steps=self.updates,
            prompts=PROMPTS,
            responses=RESPONSES,
            eval_every=self.updates,
        )


@dataclass
class Run:
    """What a run leaves.

    Attributes:
        updates: One row per update: `update`, `batch_reward`, `ess_ratio`, `step_scale`, `grad_norm`, `lag_mean`,
            `lag_max`; `batch_reward` is that of the batch just sampled.
        evals: Updates done and the success probability (`success`).
        seconds: Wall time.
        weights: `[D]` all weights after each update, where asked for.
        batches: Every batch in the order of sampling, where asked for.
    """

    updates: list[dict[str, float]] = field(default_factory=list)
    evals: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    weights: list[Tensor] = field(default_factory=list)
    batches: list[Rollout] = field(default_factory=list)


def success(policy: Policy, task: BoundTask) -> float:
    """Mean probability of the right answer and the end token over the held-out items: the exact expected reward.

    (But for responses that work out steps before the answer, which two-term items do not have.) It has no sampling
    noise, so that two runs differ by their weights alone.
    """
    items = task.source.items("held_out")
    assert task.eos is not None
    responses = torch.full((len(items), task.max_response), task.eos)
    mask = torch.zeros_like(responses, dtype=torch.bool)
    for row, kept, item in zip(responses, mask, items, strict=True):
        tokens = task.tokenizer(item.answer, add_special_tokens=False)["input_ids"]
        row[: len(tokens)] = torch.tensor(tokens)
        kept[: len(tokens) + 1] = True
    with torch.no_grad():
        logp = policy.score(task.held_out(len(items)), responses, mask).logp
    return float(torch.where(mask, logp, 0.0).sum(1).exp().mean())


def start_model(folder: Path) -> Path:
    """Folder with the start policy, warmed up by imitation if it is not there yet."""
    from vcpo_bench.bench.training.imitation_hf import warm_up_model

    if not (folder / "config.json").exists():
        warm_up_model(TASK, folder, new=NEW_MODEL, seed=MODEL_SEED, target=WARM_REWARD)
    return folder
