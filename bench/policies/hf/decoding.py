"""Responses that grow together, a few tokens at a time, while the weights change in between."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import TokenDraws
from vcpo_bench.bench.trajectories import Rollout


class SlotDecoding:
    """`Decoding` with one cache slot per response.

    Args:
        model: The network to sample from.
        prompts: int64 [P, Lp], padded on the left, P dividing `rows`.
        rows: B.
        length: Most tokens of a response.
    """

    @torch.no_grad()
    def __init__(self, model: CausalNetwork, prompts: Tensor, rows: int, length: int) -> None:
        prompts = prompts.to(model.device).repeat_interleave(rows // len(prompts), 0)
        self._slots = Slots(model, rows, prompts.shape[1] + length)
        self._padding = (~model.real(prompts)).sum(1)
        self._least_padding = int(self._padding.min())
        self._first = self._slots.fill(torch.arange(rows, device=model.device), prompts)
        self.position = prompts.shape[1]

    @property
    def caches(self) -> list[Tensor]:
        """See `Decoding`."""
        return self._slots.caches

    @caches.setter
    def caches(self, caches: list[Tensor]) -> None:
        self._slots.caches = caches

    def reload(self) -> None:
        """See `Decoding.reload`: the network's weights are read at every step."""

    @torch.no_grad()
    def extend(self, rollout: Rollout, draws: TokenDraws, positions: range) -> None:
        """Draw the tokens at consecutive positions of every row, in place; see `Policy.extend`."""
        device = draws.tokens.device
        live = rollout.mask[:, positions.start].to(device)
        rows = torch.arange(len(live), device=device)
        logits = self._first
        if self.position != draws.asked.prompts.shape[1] + positions.start:
            logits = self._step(rollout.responses[:, positions.start - 1].to(device))
        for position in positions:
            token, live = draws.draw(logits, rows, torch.full_like(rows, position), live)
            if position + 1 < positions.stop:
                logits = self._step(token)
        part = slice(positions.start, positions.stop)
        drawn = draws.rollout()
        ours = rollout.tensors()
        for name, theirs in drawn.tensors().items():
            if name in ours:
                ours[name][:, part] = theirs[:, part]
        rollout.mask[:, positions.stop :] = live.cpu().unsqueeze(1)

    def _step(self, token: Tensor) -> Tensor:
        self._slots.set_length(self.position - self._padding, self.position - self._least_padding)
        self.position += 1
        return self._slots.step(token)
