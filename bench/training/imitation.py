"""Warm starts: supervised training on demonstrations until about a third of the sampled answers are right."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from vcpo_bench import __version__
from vcpo_bench.bench.policies.base import Model
from vcpo_bench.bench.policies.tiny.policy import Policy, PolicyConfig
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task, TokenTask, token_task
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.errors import UsageError

_TARGET = 0.32
_ROWS = 64
_RATE = 7e-4
_RAMP = 30  # updates until the full learning rate
_EVERY = 5  # updates between looks at the reward
_LIMIT = 2000  # updates after which an embedded task counts as too hard
_SHIPPED = Path(__file__).parents[1] / "policies" / "tiny" / "warm"


@dataclass(frozen=True)
class WarmStart:
    """A policy to start reinforcement learning from.

    Attributes:
        task: Canonical expression of its task.
        policy: The policy.
        seed: Seed of its initial weights and demonstrations.
        steps: Supervised updates it took.
        reward: Its sampled reward on the held-out prompts.
    """

    task: str
    policy: Policy
    seed: int
    steps: int
    reward: float


def new_policy(task: TokenTask, seed: int = 0) -> Policy:
    """An untrained policy of the default size for a task."""
    return Policy(PolicyConfig(task.vocab_size, task.context), seed)


def warm_up(task: TokenTask, seed: int = 0) -> WarmStart:
    """Train a new policy on demonstrations until a third of its answers are right; see `imitate`.

    Raises:
        UsageError: The task is not learned within 2,000 updates.
    """
    policy = new_policy(task, seed)
    steps, _ = imitate(policy, task, seed, limit=_LIMIT)
    return WarmStart(task.canonical, policy, seed, steps, evaluate(policy, task).sampled_reward)


def imitate(
    policy: Model,
    task: Task,
    seed: int,
    target: float = _TARGET,
    rate: float = _RATE,
    limit: int = 2000,
    every: int = _EVERY,
    progress: Callable[[int, float], None] = lambda step, reward: None,
) -> tuple[int, float]:
    """Train on demonstrations (AdamW, batch 64) until so many of 256 sampled answers to check prompts are right.

    The check prompts come from a stream of their own: neither training nor the held-out evaluation reads it.

    Args:
        policy: Trained in place.
        task: What it learns.
        seed: Of the demonstrations.
        target: Reward to reach.
        rate: Learning rate after a ramp of 30 updates.
        limit: Updates after which the task counts as too hard.
        every: Updates between looks at the reward.
        progress: Told the updates done and the reward after each look.

    Returns:
        Updates taken and the reward reached.

    Raises:
        UsageError: The reward is not reached within `limit` updates.
    """
    optimizer = torch.optim.AdamW(policy.trainable(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    reward = 0.0
    for step in range(limit):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / _RAMP)
        _supervised_update(policy, optimizer, task, seed, step)
        if (step + 1) % every == 0:
            reward = _check(policy, task, seed)
            progress(step + 1, reward)
        if reward >= target:
            return step + 1, reward
    raise UsageError(f"{task.canonical}: reward {reward:.2f} after {limit} warm-up updates; choose an easier variant")


def _supervised_update(policy: Model, optimizer: torch.optim.Optimizer, task: Task, seed: int, step: int) -> None:
    """One step of maximum likelihood, gradient clipped to norm 1."""
    prompts, responses, mask = task.demonstrations(seed, step, _ROWS)
    optimizer.zero_grad()
    logp = policy.score(prompts, responses, mask).logp
    torch.autograd.backward(-logp.sum() / mask.sum())
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()


def _check(policy: Model, task: Task, seed: int) -> float:
    """Sampled reward on the check prompts."""
    prompts = task.stream(seed, "warm-up prompts", 0, 256)
    draws = uniforms(seed, "warm-up sampling", 0, 256, task.max_response)
    rollout = policy.sample(prompts, torch.from_numpy(draws), task.eos)
    return float(task.reward(prompts, rollout.responses, rollout.mask).mean())


def save_warm_start(start: WarmStart, path: Path) -> None:
    """Write weights and origin to a safetensors file, whole or not at all (under 1 MB).

    Raises:
        UsageError: The file cannot be written.
    """
    origin = {
        "task": start.task,
        "seed": str(start.seed),
        "steps": str(start.steps),
        "reward": f"{start.reward:.4f}",
        "version": __version__,
    }
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(start.policy.state_dict(), partial, origin)
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot write the warm start to {path}: {error}; choose another file") from error


def load_warm_start(task: TokenTask, path: Path | None = None) -> Policy:
    """The policy of `read_warm_start`; raises the same `UsageError`."""
    return read_warm_start(task, path).policy


def read_warm_start(task: TokenTask, path: Path | None = None) -> WarmStart:
    """The warm start of a task with its origin: from `path`, or the one that ships with the package.

    Raises:
        UsageError: None ships for this variant, or the file is missing, damaged or of another task.
    """
    remedy = f"make one with: vcpo-bench warmup --task '{task.canonical}'"
    path = path or _SHIPPED / f"{task.canonical}.safetensors"
    if not path.is_file():
        raise UsageError(f"no warm start for task {task.canonical!r} at {path}; {remedy}")
    policy = new_policy(task)
    try:
        with safe_open(path, "pt") as file:
            origin = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if origin.get("task") != task.canonical:
            raise UsageError(f"warm start {path} is for task {origin.get('task')!r}, not {task.canonical!r}; {remedy}")
        policy.load_state_dict(weights)
        return WarmStart(task.canonical, policy, int(origin["seed"]), int(origin["steps"]), float(origin["reward"]))
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise UsageError(f"warm start {path} is damaged; {remedy}") from error


def warmup_command(task: str, out: Path | None = None, seed: int = 0) -> tuple[WarmStart, Path]:
    """What `vcpo-bench warmup --task TASK --out FILE` does: make a warm start and write it.

    Args:
        task: Task expression.
        out: File to write; default `<task>.safetensors` in the current folder.
        seed: Seed of initial weights and demonstrations.

    Returns:
        The warm start and the file it is in.

    Raises:
        UsageError: Unknown task, one that is not learned, or an unwritable file.
    """
    start = warm_up(token_task(task), seed)
    path = out or Path(f"{start.task}.safetensors")
    save_warm_start(start, path)
    return start, path
