"""Sampling through the `generate` of Hugging Face, with the same keyed random streams."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList

from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import TokenDraws
from vcpo_bench.bench.trajectories import Rollout


class _Chooser:
    """A logits processor that draws each token from its keyed random number and leaves `generate` no other choice."""

    def __init__(self, draws: TokenDraws, prompt_length: int) -> None:
        self._draws, self._prompt_length = draws, prompt_length
        self._rows = torch.arange(len(draws.tokens), device=draws.tokens.device)
        self._live = torch.ones_like(self._rows, dtype=torch.bool)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        positions = torch.full_like(self._rows, input_ids.shape[1] - self._prompt_length)
        token, self._live = self._draws.draw(scores.float(), self._rows, positions, self._live)
        return torch.full_like(scores, -torch.inf).scatter(1, token.unsqueeze(1), 0.0)


@torch.no_grad()
def generate(model: CausalNetwork, draws: TokenDraws) -> Rollout:
    """Draw a whole batch.

    The model's own generation settings (temperature, top-p, penalties) are ignored: samples come from the policy
    itself.
    """
    prompts = draws.prompts()
    settings = GenerationConfig(
        max_new_tokens=draws.asked.length,
        do_sample=False,
        eos_token_id=draws.asked.eos,
        pad_token_id=model.pad,
    )
    network, own = model.network, model.network.generation_config
    network.generation_config = settings  # else it fills in what `settings` leaves at its default
    try:
        network.generate(
            input_ids=prompts,
            attention_mask=model.real(prompts).long(),
            generation_config=settings,
            logits_processor=LogitsProcessorList([_Chooser(draws, prompts.shape[1])]),
        )
    finally:
        network.generation_config = own
    return draws.rollout()
