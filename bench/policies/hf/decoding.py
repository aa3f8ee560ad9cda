"""Responses that grow in step, a few tokens at a time, while the weights change in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.hf.sampling import Draws
from vcpo_bench.bench.policies.tiny.sampling import Rollout

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy


class SlotDecoding:
    """`model.Decoding` with one slot per response.

    Args:
        policy: The policy.
        prompts: int64 [P, Lp], padded on the left, P dividing `rows`.
        rows: B.
        length: Most tokens of a response.
    """

    @torch.no_grad()
    def __init__(self, policy: CausalPolicy, prompts: Tensor, rows: int, length: int) -> None:
        prompts = prompts.to(policy.device).repeat_interleave(rows // len(prompts), 0)
        self._slots = Slots(policy, rows, prompts.shape[1] + length)
        self._padding = (~policy.real(prompts)).sum(1)
        self._least_padding = int(self._padding.min())
        self._first = self._slots.fill(torch.arange(rows, device=policy.device), prompts)
        self.position = prompts.shape[1]

    @property
    def caches(self) -> list[Tensor]:
        """See `model.Decoding`."""
        return self._slots.caches

    @caches.setter
    def caches(self, caches: list[Tensor]) -> None:
        self._slots.caches = caches

    def reload(self) -> None:
        """See `model.Decoding`: the network is always read as it is."""

    @torch.no_grad()
    def extend(self, rollout: Rollout, prompt_length: int, draws: Draws, places: range) -> None:
        """Draw consecutive places of every row, in place; see `Model.extend`."""
        device = draws.tokens.device
        live = rollout.mask[:, places.start].to(device)
        rows = torch.arange(len(live), device=device)
        logits = self._first
        if self.position != prompt_length + places.start:
            logits = self._step(rollout.responses[:, places.start - 1].to(device))
        for place in places:
            token, live = draws.draw(logits, rows, torch.full_like(rows, place), live)
            if place + 1 < places.stop:
                logits = self._step(token)
        part = slice(places.start, places.stop)
        drawn = draws.rollout()
        for ours, theirs in zip((rollout.responses, rollout.logp, rollout.mask, rollout.entropy),
                                (drawn.responses, drawn.logp, drawn.mask, drawn.entropy), strict=True):  # fmt: skip
            ours[:, part] = theirs[:, part]
        rollout.mask[:, places.stop :] = live.cpu().unsqueeze(1)

    def _step(self, token: Tensor) -> Tensor:
        self._slots.place(self.position - self._padding, self.position - self._least_padding)
        self.position += 1
        return self._slots.step(token)
