"""Sampling through Hugging Face's own `generate`, with the same keyed random streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList

from vcpo_bench.bench.policies.hf.sampling import Draws
from vcpo_bench.bench.policies.tiny.sampling import Rollout

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy


class _Chooser:
    """Draws each token by its keyed number and leaves `generate` no other choice."""

    def __init__(self, draws: Draws, prompt_length: int) -> None:
        self._draws, self._prompt_length = draws, prompt_length
        self._rows = torch.arange(len(draws.tokens), device=draws.tokens.device)
        self._live = torch.ones_like(self._rows, dtype=torch.bool)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        places = torch.full_like(self._rows, input_ids.shape[1] - self._prompt_length)
        token, self._live = self._draws.draw(scores.float(), self._rows, places, self._live)
        return torch.full_like(scores, -torch.inf).scatter(1, token.unsqueeze(1), 0.0)


@torch.no_grad()
def generate(policy: CausalPolicy, prompts: Tensor, draws: Draws) -> Rollout:
    """Draw a whole batch; prompts int64 [P, Lp], padded on the left, P dividing the rows of `draws`.

    The generation settings that come with a model (temperature, top-p, penalties) are not used: samples come from the
    policy itself.
    """
    B, T = draws.uniforms.shape
    prompts = prompts.to(policy.device).repeat_interleave(B // len(prompts), 0)
    settings = GenerationConfig(
        max_new_tokens=T,
        do_sample=False,
        eos_token_id=None if draws.eos < 0 else draws.eos,
        pad_token_id=policy.pad,
    )
    network, own = policy.network, policy.network.generation_config
    network.generation_config = settings  # `generate` takes from the model's own what an argument leaves at its default
    try:
        network.generate(
            input_ids=prompts,
            attention_mask=policy.real(prompts).long(),
            generation_config=settings,
            logits_processor=LogitsProcessorList([_Chooser(draws, prompts.shape[1])]),
        )
    finally:
        network.generation_config = own
    return draws.rollout()
