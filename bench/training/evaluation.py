"""How good a policy is on prompts that no run trains on."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task

EPISODES_KEPT = 4
"""Held-out prompts whose sampled responses are kept as text."""


class Episode(NamedTuple):
    """A sampled response to a held-out prompt, as text, and its reward."""

    text: str
    reward: float


@dataclass(frozen=True)
class Evaluation:
    """Means over the held-out prompts.

    Attributes:
        greedy_reward: Reward when every token is the most likely one.
        sampled_reward: Reward when responses are sampled at temperature 1.
        entropy: Entropy in nats per sampled token.
        episodes: The sampled responses to the first prompts.
    """

    greedy_reward: float
    sampled_reward: float
    entropy: float
    episodes: tuple[Episode, ...]


def evaluate(policy: Policy, task: Task) -> Evaluation:
    """Evaluate on the task's held-out prompts, one greedy and one sampled response each.

    Prompts and sampling noise are the same in every call of every run, so that evaluations are paired.
    """
    prompts = task.held_out()
    draws = uniforms(0, "held-out sampling", 0, len(prompts), task.max_response)
    greedy = torch.tensor([True, False]).repeat(len(prompts))
    rollout = policy.sample(prompts, torch.from_numpy(draws).repeat_interleave(2, 0), task.eos, greedy)
    reward = task.reward(prompts, rollout.responses, rollout.mask)
    entropy = rollout.entropy[~greedy].sum() / rollout.mask[~greedy].sum()
    episodes = tuple(
        Episode(
            task.render(prompts[i], rollout.responses[2 * i + 1], rollout.mask[2 * i + 1]), float(reward[2 * i + 1])
        )
        for i in range(min(EPISODES_KEPT, len(prompts)))
    )
    return Evaluation(float(reward[greedy].mean()), float(reward[~greedy].mean()), float(entropy), episodes)
