"""Sampling with continuous refill: a slot whose response has ended takes the next prompt that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.tiny.sampling import Rollout
from vcpo_bench.bench.samplers.base import SamplerSpec

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy

_DRAW_BYTES = 2**28  # of float64 probabilities that exist at once
_WORTH_FILLING = 8  # slots are filled when at least one in so many is free: evaluating prompts in a batch is cheaper


class Draws:
    """Where the tokens of a batch come from and go to, on the policy's device.

    Args:
        uniforms: [B, T] in [0, 1): token t of row i is the inverse of its cumulative distribution at [i, t].
        eos: Token that ends a response, or None.
        greedy: bool [B] rows that take the most likely token, or None.
        spec: How the distribution is truncated, if it is.
        device: Of the policy.
    """

    def __init__(
        self, uniforms: Tensor, eos: int | None, greedy: Tensor | None, spec: SamplerSpec, device: torch.device
    ) -> None:
        self.uniforms, self.spec = uniforms.to(device), spec
        self.greedy = None if greedy is None else greedy.to(device)
        self.eos = -1 if eos is None else eos
        empty = Rollout.empty(uniforms.shape[0], uniforms.shape[1], eos)
        self.tokens, self.logp, self.entropy = (t.to(device) for t in (empty.responses, empty.logp, empty.entropy))
        self.mask = torch.zeros_like(self.tokens, dtype=torch.bool)

    def draw(self, logits: Tensor, rows: Tensor, places: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
        """Draw one token for each of n rows and note it where the row is live.

        Args:
            logits: [n, V].
            rows: int64 [n] which trajectories.
            places: int64 [n] place of the token in each response.
            live: bool [n].

        Returns:
            The tokens [n], and which rows were live and have not ended with them.
        """
        size = max(1, _DRAW_BYTES // (8 * logits.shape[1]))
        parts = zip(*(torch.split(tensor, size) for tensor in (logits, rows, places)), strict=True)
        found = torch.cat([self._draw(*part) for part in parts], 1)
        token, logp, entropy = found[0].long(), found[1].float(), found[2].float()
        at = (rows, self._within(places))
        known = ((self.tokens, token), (self.logp, logp), (self.entropy, entropy), (self.mask, live))
        for kept, new in known:  # rows differ; choosing the live ones by an index would wait for the GPU
            kept[at] = torch.where(live, new, kept[at])
        return token, live & (token != self.eos) & (places + 1 < self.uniforms.shape[1])

    def _draw(self, logits: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Token, log-probability and entropy, float64 [3, n]."""
        logp = truncated(logits, self.spec).log_softmax(1)
        p = logp.exp()
        cumulative = p.double().cumsum(1)
        target = (self.uniforms[rows, self._within(places)] * cumulative[:, -1]).unsqueeze(1)
        token = torch.searchsorted(cumulative, target, right=True).squeeze(1).clamp(max=logits.shape[1] - 1)
        if self.greedy is not None:
            token = torch.where(self.greedy[rows], logp.argmax(1), token)
        entropy = torch.special.entr(p).sum(1)
        return torch.stack([token.double(), logp.gather(1, token.unsqueeze(1)).squeeze(1).double(), entropy.double()])

    def _within(self, places: Tensor) -> Tensor:
        """The places, those of rows that have ended not behind the last."""
        return places.clamp(max=self.uniforms.shape[1] - 1)

    def rollout(self) -> Rollout:
        """What was drawn, in main memory."""
        return Rollout(self.tokens.cpu(), self.logp.cpu(), self.mask.cpu(), self.entropy.cpu())


def truncated(logits: Tensor, spec: SamplerSpec) -> Tensor:
    """Logits [n, V] with those outside top_k and top_p at minus infinity; untouched where nothing is truncated."""
    if spec.top_k:
        kept = logits.topk(min(spec.top_k, logits.shape[1])).values[:, -1:]
        logits = logits.masked_fill(logits < kept, -torch.inf)
    if spec.top_p < 1:
        values, order = logits.sort(descending=True)
        before = values.softmax(1).cumsum(1) - values.softmax(1)
        logits = logits.scatter(1, order, values.masked_fill(before >= spec.top_p, -torch.inf))
    return logits


@torch.no_grad()
def sample(policy: CausalPolicy, prompts: Tensor, draws: Draws, slots: int) -> Rollout:
    """Draw a whole batch, at most `slots` responses at once (0: all).

    Args:
        policy: What to sample from.
        prompts: int64 [P, Lp], padded on the left, P dividing B.
        draws: Of B rows.
        slots: S.
    """
    B, T = draws.uniforms.shape
    prompts = prompts.to(policy.device).repeat_interleave(B // len(prompts), 0)
    count = min(slots or B, B)
    state = Slots(policy, count, int(policy.real(prompts).sum(1).max()) + T - 1)
    rows = torch.zeros(count, dtype=torch.int64, device=policy.device)
    places, live = torch.zeros_like(rows), torch.zeros_like(rows, dtype=torch.bool)
    logits, waiting = torch.empty(0), 0  # the first row that has no slot yet
    while True:
        if waiting < B and len(free := (~live).nonzero().squeeze(1)) * _WORTH_FILLING >= len(live):
            new = free[: B - waiting]
            rows[new] = torch.arange(waiting, waiting + len(new), device=policy.device)
            waiting += len(new)
            first = state.fill(new, prompts[rows[new]])
            logits = first.clone() if len(logits) != len(live) else logits.index_copy(0, new, first)
            places[new], live[new] = 0, True
        token, live = draws.draw(logits, rows, places, live)
        places = places + 1
        left = int(live.sum())
        if not left and waiting == B:
            return draws.rollout()
        if waiting == B and left < 0.75 * len(live):
            kept = live.nonzero().squeeze(1)
            state.keep(kept)
            rows, places, live, token = rows[kept], places[kept], live[kept], token[kept]
        if left:
            logits = state.step(token)
