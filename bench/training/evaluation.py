"""Evaluation of a policy on held-out prompts, which no run trains on."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.conversation import respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.tasks.base import HELD_OUT
from vcpo_bench.bench.trajectories import Rollout

SAMPLES_KEPT = 4
"""Number of held-out prompts whose sampled responses are kept as text."""


class Sample(NamedTuple):
    """A sampled response to a held-out prompt: prompt and response as text, and the reward."""

    text: str
    reward: float


@dataclass(frozen=True)
class Evaluation:
    """Means over the held-out prompts.

    Attributes:
        greedy_reward: Mean reward of greedy decoding.
        sampled_reward: Mean reward of responses sampled at temperature 1.
        sampled_reward_easy: The same over the easy prompts; NaN where the task makes no difference.
        sampled_reward_hard: The same over the hard prompts.
        entropy: Entropy of the policy in nats per sampled token.
        samples: The sampled responses to the first prompts.
    """

    greedy_reward: float
    sampled_reward: float
    sampled_reward_easy: float
    sampled_reward_hard: float
    entropy: float
    samples: tuple[Sample, ...]


def evaluate(policy: Policy, task: Task, prompts: int = HELD_OUT) -> Evaluation:
    """Evaluate on the task's held-out prompts, at most so many, one greedy and one sampled response each.

    Prompts and sampling noise are the same in every call of every run, so that evaluations are paired.
    """
    asked = questions(task, prompts)
    return judge(task, asked, respond(policy, task.environment, asked))


def questions(task: Task, count: int = HELD_OUT) -> Draw:
    """What `evaluate` asks of every policy: a greedy and a sampled response to each held-out prompt, in turn."""
    prompts = task.held_out(count)
    noise = torch.from_numpy(uniforms(0, "held-out sampling", 0, len(prompts), task.max_response))
    return Draw(prompts, noise.repeat_interleave(2, 0), task.eos, torch.tensor([True, False]).repeat(len(prompts)))


def judge(task: Task, asked: Draw, rollout: Rollout) -> Evaluation:
    """The evaluation of a policy that answered with `rollout`."""
    prompts, greedy = asked.prompts, asked.greedy
    assert greedy is not None
    reward = task.reward(prompts, rollout.responses, rollout.mask)
    entropy = rollout.entropy[~greedy].sum() / rollout.mask[~greedy].sum()
    samples = []
    for i in range(min(SAMPLES_KEPT, len(prompts))):
        row = 2 * i + 1
        text = task.render(prompts[i], rollout.responses[row], rollout.mask[row])
        samples.append(Sample(text, float(reward[row])))
    sampled = reward[~greedy]
    easy, hard = _by_difficulty(sampled, task.hard(prompts))
    means = float(reward[greedy].mean()), float(sampled.mean()), easy, hard
    return Evaluation(*means, float(entropy), tuple(samples))


def _by_difficulty(reward: Tensor, hard: Tensor | None) -> tuple[float, float]:
    """Means of rewards [P] over easy and over hard prompts, NaN where there are none."""
    if hard is None:
        return math.nan, math.nan
    return float(reward[~hard].mean()), float(reward[hard].mean())
