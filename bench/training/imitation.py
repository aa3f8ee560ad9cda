"""Supervised warm-up: train a policy on demonstrations until about a third of its sampled answers are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.catalog import POLICIES, EmbeddedPolicy
from vcpo_bench.bench.policies.conversation import respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.warm_start import TINY, WarmStart, save_warm_start
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task, TokenTask, token_task
from vcpo_bench.bench.tasks.checks import check_task
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.imitation_state import WarmupState
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.errors import UsageError
from vcpo_bench.progress import track

_TARGET = 0.32


class Pace(NamedTuple):
    """How a policy is trained on demonstrations; the defaults are those of the tiny policy.

    Attributes:
        learning_rate: Learning rate after the ramp.
        rows: Demonstrations per update.
        ramp: Updates of the linear ramp.
        every: Updates between checks of the reward.
        checked: Answers sampled for a check.
        limit: Updates after which the task counts as too hard.
    """

    learning_rate: float = 7e-4
    rows: int = 64
    ramp: int = 30
    every: int = 5
    checked: int = 256
    limit: int = 2000


def warm_up(task: TokenTask, seed: int = 0, kind: EmbeddedPolicy = TINY) -> WarmStart:
    """Train a new policy on demonstrations until a third of its answers are right; see `imitate`.

    Raises:
        UsageError: The target is not reached within 2,000 updates.
    """
    policy = kind.untrained(task, seed)
    steps, _ = imitate(policy, task, seed)
    result = evaluate(policy, task)
    return WarmStart(task.canonical, policy, seed, steps, result.sampled_reward, result.greedy_reward, kind)


def imitate(
    policy: Policy,
    task: Task,
    seed: int,
    target: float = _TARGET,
    pace: Pace = Pace(),  # noqa: B008 - immutable
    progress: Callable[[int, float], None] = lambda step, reward: None,
    state: WarmupState | None = None,
) -> tuple[int, float]:
    """Train on demonstrations (AdamW) until the mean reward of sampled answers reaches a target.

    The prompts of these checks come from a random stream of their own, which neither training nor the held-out
    evaluation reads.

    Args:
        policy: Policy, trained in place.
        task: Task that provides the demonstrations.
        seed: Seed of the demonstrations.
        target: Mean sampled reward at which training stops.
        pace: How it is trained.
        progress: Called after each check with the number of updates done and the reward.
        state: Where it is saved from time to time, and continued from; None: nowhere.

    Returns:
        Number of updates and the reward reached.

    Raises:
        UsageError: The target is not reached within `pace.limit` updates, or the saved state cannot be used.
    """
    optimizer = torch.optim.AdamW(policy.trainable(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    reward = 0.0
    done = state.load(policy, optimizer) if state else 0
    for step in track(range(done, pace.limit), "supervised updates, at most", pace.limit - done):
        for group in optimizer.param_groups:
            group["lr"] = pace.learning_rate * min(1.0, (step + 1) / pace.ramp)
        _supervised_update(policy, optimizer, task, seed, step, pace.rows)
        if (step + 1) % pace.every == 0:
            reward = _check(policy, task, seed, pace.checked)
            progress(step + 1, reward)
        if reward >= target:
            return step + 1, reward
        if state:
            state.save(policy, optimizer, step + 1)
    raise UsageError(
        f"{task.canonical}: reward {reward:.2f} after {pace.limit} warm-up updates; choose an easier variant"
    )


def _supervised_update(
    policy: Policy, optimizer: torch.optim.Optimizer, task: Task, seed: int, step: int, rows: int
) -> None:
    """One step of maximum likelihood, gradient clipped to norm 1."""
    given = Responses(*task.demonstrations(seed, step, rows))
    optimizer.zero_grad()
    logp = policy.score(given).logp
    torch.autograd.backward(-logp.sum() / given.mask.sum())
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()


def _check(policy: Policy, task: Task, seed: int, count: int) -> float:
    """Mean sampled reward on the check prompts."""
    prompts = task.stream(seed, "warm-up prompts", 0, count)
    draws = uniforms(seed, "warm-up sampling", 0, count, task.max_response)
    rollout = respond(policy, task.environment, Draw(prompts, torch.from_numpy(draws), task.eos))
    return float(task.reward(prompts, rollout.responses, rollout.mask).mean())


def warmup_command(task: str, out: Path | None = None, seed: int = 0, kind: str = TINY.name) -> tuple[WarmStart, Path]:
    """Make a warm start and write it: `vcpo-bench lab warmup --task TASK --out FILE`.

    Args:
        task: Task expression.
        out: File to write; default `<task>.safetensors` in the current folder.
        seed: Seed of the initial weights and demonstrations.
        kind: Policy expression.

    Returns:
        The warm start and the file that holds it.

    Raises:
        UsageError: The task or the policy is unknown, the task is not learned, or the file cannot be written.
    """
    learned = token_task(task)
    check_task(learned, demonstrations=True)
    start = warm_up(learned, seed, POLICIES.parse(kind))
    path = out or Path(f"{start.task}.safetensors")
    save_warm_start(start, path)
    return start, path
