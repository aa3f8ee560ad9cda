"""Supervised warm-up of a language model, saved as an ordinary Hugging Face folder."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vcpo_bench import __version__
from vcpo_bench.bench.cells.model_source import ORIGIN_FILE, model_folder
from vcpo_bench.bench.devices import checked_device, multiplies_bfloat16
from vcpo_bench.bench.policies.hf.create import new_model
from vcpo_bench.bench.policies.hf.loading import check_context, read_network, read_tokenizer
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.imitation import Pace, imitate
from vcpo_bench.bench.training.imitation_state import WarmupState
from vcpo_bench.errors import UsageError

LEARNING_RATE = 1e-3
"""Of new models below 9 million parameters; larger ones have a smaller one, see `learning_rate`."""
LIMIT = 20_000
CHECK_EVERY = 50
PRETRAINED = Pace(learning_rate=1e-4, rows=16, ramp=5, checked=128, limit=LIMIT)
"""A pretrained model learns a format in tens of updates, and forgets at the rates of new ones."""
MARK = "config.json"
"""File by which a folder is known to hold a model."""
STATE_FILE = "vcpo_bench_warmup.pt"
"""File in the folder while the warm-up is not done, from which the same call continues."""
DRAFT = "vcpo_bench_draft"


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

    The same call continues one that was stopped.

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
    if (out / MARK).exists():
        raise UsageError(f"--out {out}: holds a model already; choose another folder")
    if new:
        network, tokenizer = new_model(new, seed)
    else:
        folder = model_folder(model)
        network, tokenizer = read_network(folder), read_tokenizer(folder)
    bound = BoundTask(text_task(task), tokenizer)
    check_context(network, bound)
    halved = not new and multiplies_bfloat16(device)  # without instructions for it, bfloat16 takes many times as long
    dtype = torch.bfloat16 if halved else torch.float32
    policy = CausalPolicy(network.to(checked_device(device)), bound.pad, dtype)
    parameters = sum(p.numel() for p in policy.parameters())
    state = WarmupState(out / STATE_FILE, {"task": bound.canonical, "from": model or new, "seed": seed})
    pace = Pace(learning_rate(parameters), every=CHECK_EVERY, limit=LIMIT) if new else PRETRAINED
    steps, _ = imitate(policy, bound, seed, target, pace, progress, state)
    warmed = Warmed(bound.canonical, parameters, steps, evaluate(policy, bound).sampled_reward)
    _save(network, tokenizer, out, {**warmed._asdict(), "seed": seed, "from": model or new, "version": __version__})
    return warmed


def learning_rate(parameters: int) -> float:
    """Learning rate of a new model: 1e-3, or what Kaplan et al. 2020 (eq. D.1) give for larger models (1e8: 6.7e-4)."""
    return min(LEARNING_RATE, 0.003239 - 0.0001395 * math.log(parameters))


def _save(network: Any, tokenizer: Any, out: Path, origin: dict[str, Any]) -> None:
    """Write a model beside its place, then move it there, the file by which it is known last."""
    draft = out / DRAFT
    try:
        shutil.rmtree(draft, ignore_errors=True)
        network.to("cpu").save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        (draft / ORIGIN_FILE).write_text(json.dumps(origin, indent=1))
        mode = (draft / ORIGIN_FILE).stat().st_mode
        for path in sorted(draft.iterdir(), key=lambda path: path.name == MARK):
            path.chmod(mode)  # safetensors hides its files from everyone else
            path.replace(out / path.name)
        draft.rmdir()
        (out / STATE_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror}); choose another folder") from error
