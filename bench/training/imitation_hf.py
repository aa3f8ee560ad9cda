"""Supervised warm-up of a language model, saved as an ordinary Hugging Face folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench import __version__
from vcpo_bench.bench.cells.model_source import model_folder
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.hf.create import new_model
from vcpo_bench.bench.policies.hf.loading import check_context, read_network, read_tokenizer
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.imitation import imitate
from vcpo_bench.errors import UsageError

LEARNING_RATE = 1e-3
LIMIT = 20_000
CHECK_EVERY = 50
ORIGIN_FILE = "vcpo_bench_warmup.json"
"""File beside the weights that says how the model was made."""


class Warmed(NamedTuple):
    """Result of a warm-up.

    Attributes:
        task: Canonical expression of its task.
        parameters: Number of parameters of the model.
        steps: Number of supervised updates.
        reward: Sampled reward on the held-out prompts.
    """

    task: str
    parameters: int
    steps: int
    reward: float


def warm_up_model(
    task: str,
    out: Path,
    model: str = "",
    new: str = "",
    seed: int = 0,
    target: float = 0.32,
    device: str = "cpu",
    progress: Callable[[int, float], None] = lambda step, reward: None,
) -> Warmed:
    """Train a language model on demonstrations of a task until its sampled reward reaches a target, and save it.

    Args:
        task: Expression of a text task.
        out: Folder to write; must not hold a model yet.
        model: Folder or name of the model to start from.
        new: Random model to create instead, such as `llama(1M)`.
        seed: Seed of the demonstrations, and of the weights of a new model.
        target: Mean sampled reward at which training stops.
        device: Device to train on.
        progress: Called after each check with the number of updates done and the reward.

    Raises:
        UsageError: The model, task or folder cannot be used, or the task is not learned within 20,000 updates.
    """
    if bool(model) == bool(new):
        raise UsageError("warm-up of a language model: give either --model FOLDER or --new 'llama(1M)'")
    if (out / "config.json").exists():
        raise UsageError(f"--out {out}: holds a model already; choose another folder")
    if new:
        network, tokenizer = new_model(new, seed)
    else:
        folder = model_folder(model)
        network, tokenizer = read_network(folder), read_tokenizer(folder)
    bound = BoundTask(text_task(task), tokenizer)
    check_context(network, bound)
    policy = CausalPolicy(network.to(checked_device(device)), bound.pad)
    steps, _ = imitate(policy, bound, seed, target, LEARNING_RATE, LIMIT, CHECK_EVERY, progress)
    warmed = Warmed(
        bound.canonical, sum(p.numel() for p in policy.parameters()), steps, evaluate(policy, bound).sampled_reward
    )
    _save(network, tokenizer, out, {**warmed._asdict(), "seed": seed, "from": model or new, "version": __version__})
    return warmed


def _save(network: Any, tokenizer: Any, out: Path, origin: dict[str, Any]) -> None:
    try:
        network.to("cpu").save_pretrained(out)
        tokenizer.save_pretrained(out)
        (out / ORIGIN_FILE).write_text(json.dumps(origin, indent=1))
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror}); choose another folder") from error
