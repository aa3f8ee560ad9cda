"""Sampling by all processes at once: each draws the responses to some of the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import SamplingLoop, TokenDraws
from vcpo_bench.bench.sharding.layout import whole
from vcpo_bench.bench.sharding.ranks import Ranks
from vcpo_bench.bench.trajectories import Rollout


@dataclass(frozen=True, slots=True)
class SharedLoop:
    """A sampling loop whose rows are drawn by several processes; all of them end up with the whole batch.

    Each process holds all parameters while it draws. It could gather each block for each token instead, and would then
    wait for all the others once per block and token.

    Attributes:
        loop: Draws the rows of one process.
        ranks: The processes.
    """

    loop: SamplingLoop
    ranks: Ranks

    def __call__(self, model: CausalNetwork, draws: TokenDraws) -> Rollout:
        """See `SamplingLoop`."""
        count = len(draws.asked.prompts)
        shares, each = torch.arange(count).tensor_split(self.ranks.count), draws.asked.rows // count
        with whole(model):
            if not len(shares[-1]):  # fewer prompts than processes
                return self.loop(model, draws)
            mine = self.loop(model, _part(draws, shares[self.ranks.number], each))
        found = self._together(mine, [len(share) * each for share in shares])
        assert len(found.mask) == draws.asked.rows
        return found

    def _together(self, mine: Rollout, rows: Sequence[int]) -> Rollout:
        gathered = {
            name: self.ranks.gather_rows(value.to(torch.uint8) if value.dtype == torch.bool else value, rows).to(
                value.dtype
            )
            for name, value in mine.tensors().items()
        }
        return Rollout(**gathered)


def _part(draws: TokenDraws, prompts: Tensor, each: int) -> TokenDraws:
    """The draws of some consecutive prompts, before the first of them."""
    asked, rows = draws.asked, slice(int(prompts[0]) * each, (int(prompts[-1]) + 1) * each)
    greedy = None if asked.greedy is None else asked.greedy[rows]
    part = replace(asked, prompts=asked.prompts[prompts], uniforms=asked.uniforms[rows], greedy=greedy)
    return TokenDraws(part, draws.tokens.device, draws.vocabulary)
