"""Sampling with continuous refill: a slot whose response has ended takes the next prompt that waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from vcpo_bench.bench.policies.draw import Draw, looks
from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.truncation import FLOOR, Truncation, pack, packed_size
from vcpo_bench.bench.trajectories import Rollout

_DRAW_BYTES = 2**28  # float64 probabilities in memory at once
ANY_SHAPE = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Attention for shapes that change: cuDNN's plans each anew, which took 5 s of a first batch on an H200."""
WORTH_FILLING = 8  # refill once one slot in so many is free: evaluating several prompts at once is cheaper


SamplingLoop = Callable[[CausalNetwork, "TokenDraws"], Rollout]
"""Draws a whole batch: one response per row of the draws, which say where each token comes from."""


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How a language model draws its own responses.

    Attributes:
        loop: What draws a batch; None: `refill`, all responses at once.
        truncation: How distributions are cut.
    """

    loop: SamplingLoop | None = None
    truncation: Truncation = Truncation()  # noqa: RUF009 - immutable


class TokenDraws:
    """The random numbers of a batch, and the tokens drawn with them so far, on the network's device.

    Args:
        asked: What is drawn; prompts are padded on the left.
        device: Where the logits are.
        vocabulary: V.
    """

    def __init__(self, asked: Draw, device: torch.device, vocabulary: int) -> None:
        self.asked, self.vocabulary = asked, vocabulary
        self.uniforms, self.truncation = asked.uniforms.to(device), asked.truncation or Truncation()
        self.greedy = None if asked.greedy is None else asked.greedy.to(device)
        self.eos = -1 if asked.eos is None else asked.eos
        empty = Rollout.empty(asked.rows, asked.length, asked.eos)
        self.tokens, self.logp, self.entropy = (t.to(device) for t in (empty.responses, empty.logp, empty.entropy))
        self.mask = torch.zeros_like(self.tokens, dtype=torch.bool)
        shape = (asked.rows, asked.length, packed_size(vocabulary))
        self.kept = torch.zeros(shape, dtype=torch.uint8, device=device) if self.truncation.replay else None

    def prompts(self) -> Tensor:
        """The prompt of each row, [B, Lp]."""
        asked = self.asked
        return asked.prompts.to(self.uniforms.device).repeat_interleave(asked.rows // len(asked.prompts), 0)

    def draw(self, logits: Tensor, rows: Tensor, positions: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
        """Draw one token for each of n rows, and record it for rows that are live.

        Args:
            logits: [n, V].
            rows: int64 [n], which trajectories.
            positions: int64 [n], position of the token in each response.
            live: bool [n].

        Returns:
            The tokens int64 [n], and bool [n], True for rows that were live and do not end with this token.
        """
        size = max(1, _DRAW_BYTES // (8 * logits.shape[1]))
        parts = zip(*(torch.split(tensor, size) for tensor in (logits, rows, positions, live)), strict=True)
        found = torch.cat([self._draw(*part) for part in parts], 1)
        token, logp, entropy = found[0].long(), found[1].float(), found[2].float()
        at = (rows, self._within(positions))
        known = ((self.tokens, token), (self.logp, logp), (self.entropy, entropy), (self.mask, live))
        for kept, new in known:  # rows differ; choosing the live ones by an index would wait for the GPU
            kept[at] = torch.where(live, new, kept[at])
        return token, live & (token != self.eos) & (positions + 1 < self.uniforms.shape[1])

    def _draw(self, logits: Tensor, rows: Tensor, positions: Tensor, live: Tensor) -> Tensor:
        """Token, log-probability and entropy, float64 [3, n]; survivors are recorded for rows that are live."""
        logp = self.truncation.apply(logits, 1).log_softmax(1)
        if self.kept is not None:
            at = (rows, self._within(positions))
            self.kept[at] = torch.where(live.unsqueeze(1), pack(logp > FLOOR / 2), self.kept[at])
        p = logp.exp()
        cumulative = p.double().cumsum(1)
        target = (self.uniforms[rows, self._within(positions)] * cumulative[:, -1]).unsqueeze(1)
        token = torch.searchsorted(cumulative, target, right=True).squeeze(1).clamp(max=logits.shape[1] - 1)
        if self.greedy is not None:
            token = torch.where(self.greedy[rows], logp.argmax(1), token)
        entropy = torch.special.entr(p).sum(1)
        return torch.stack([token.double(), logp.gather(1, token.unsqueeze(1)).squeeze(1).double(), entropy.double()])

    def _within(self, positions: Tensor) -> Tensor:
        """The positions, clamped to the last one for rows that have ended."""
        return positions.clamp(max=self.uniforms.shape[1] - 1)

    def rollout(self) -> Rollout:
        """The tokens drawn so far, in main memory."""
        kept = None if self.kept is None else self.kept.cpu()
        return Rollout(self.tokens.cpu(), self.logp.cpu(), self.mask.cpu(), self.entropy.cpu(), kept=kept)


@torch.no_grad()
@sdpa_kernel(ANY_SHAPE)
def refill(model: CausalNetwork, draws: TokenDraws, slots: int = 0) -> Rollout:
    """Draw a whole batch, at most `slots` responses at once (0: all).

    Args:
        model: The network to sample from.
        draws: Random numbers of the B responses.
        slots: S, at most.
    """
    prompts, B, T = draws.prompts(), draws.asked.rows, draws.asked.length
    count = min(slots or B, B)
    state = Slots(model, count, int(model.real(prompts).sum(1).max()) + T - 1)
    rows = torch.zeros(count, dtype=torch.int64, device=model.device)
    positions, live = torch.zeros_like(rows), torch.zeros_like(rows, dtype=torch.bool)
    logits, waiting, step = torch.empty(0), 0, 0  # the first row without a slot
    while True:
        worth = looks(step, model.device) and waiting < B
        if worth and len(free := (~live).nonzero().squeeze(1)) * WORTH_FILLING >= len(live):
            new = free[: B - waiting]
            rows[new] = torch.arange(waiting, waiting + len(new), device=model.device)
            waiting += len(new)
            first = state.fill(new, prompts[rows[new]])
            logits = first.clone() if len(logits) != len(live) else logits.index_copy(0, new, first)
            positions[new], live[new] = 0, True
        token, live = draws.draw(logits, rows, positions, live)
        positions = positions + 1
        step += 1
        if looks(step, model.device):
            left = int(live.sum())
            if not left and waiting == B:
                return draws.rollout()
            if waiting == B and left < 0.75 * len(live):
                kept = live.nonzero().squeeze(1)
                state.keep(kept)
                rows, positions, live, token = rows[kept], positions[kept], live[kept], token[kept]
            if not left:
                continue  # all slots are free, and filled above
        logits = state.step(token)
