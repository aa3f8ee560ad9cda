"""Whole responses in which an environment answers a policy whose turns an engine draws."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from vcpo_bench.bench.policies.conversation import Conversation
from vcpo_bench.bench.samplers.engines.base import InflightEngine, Segment
from vcpo_bench.bench.tasks.environment import Environment
from vcpo_bench.bench.trajectories import Rollout


def draw_in_turns(
    engine: InflightEngine, environment: Environment, prompts: Tensor, uniforms: Tensor, eos: int | None
) -> Rollout:
    """One response per row of `uniforms`, every token stamped with the version of the weights that drew it.

    Args:
        engine: Draws the policy's turns.
        environment: What answers them.
        prompts: int64 [P, Lp], P dividing B.
        uniforms: float64 [B, T]; that at the first token of a request becomes its seed.
        eos: Token that ends a response, or None.
    """
    rows, length = uniforms.shape
    talk = Conversation(environment, prompts, rows, length)
    rollout = replace(Rollout.empty(rows, length, eos), version=torch.zeros(rows, length, dtype=torch.int64))
    engine.advance([Segment(0, prompts, uniforms, rollout, range(length), talk)], eos, keep=False)
    return replace(rollout, episodes=talk.facts())
