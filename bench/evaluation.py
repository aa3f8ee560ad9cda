"""How good a policy is on prompts that no run trains on."""

from dataclasses import dataclass

import torch

from vcpo_bench.bench.model import Model
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task


@dataclass(frozen=True)
class Evaluation:
    """Means over the held-out prompts.

    Attributes:
        greedy_reward: reward when every token is the most likely one.
        sampled_reward: reward when responses are sampled at temperature 1.
        entropy: entropy in nats per sampled token.
    """

    greedy_reward: float
    sampled_reward: float
    entropy: float


def evaluate(policy: Model, task: Task) -> Evaluation:
    """Evaluate on the task's held-out prompts, one greedy and one sampled response each.

    Prompts and sampling noise are the same in every call of every run, so that evaluations are paired.
    """
    prompts = task.held_out()
    draws = uniforms(0, "held-out sampling", 0, len(prompts), task.max_response)
    greedy = torch.tensor([True, False]).repeat(len(prompts))
    rollout = policy.sample(prompts, torch.from_numpy(draws).repeat_interleave(2, 0), task.eos, greedy)
    reward = task.reward(prompts, rollout.responses, rollout.mask)
    entropy = rollout.entropy[~greedy].sum() / rollout.mask[~greedy].sum()
    return Evaluation(float(reward[greedy].mean()), float(reward[~greedy].mean()), float(entropy))
