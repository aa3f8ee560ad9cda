"""Sampling by all processes at once: each draws the responses to some of the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

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

    def __call__(self, model: CausalNetwork, prompts: Tensor, draws: TokenDraws) -> Rollout:
        """See `SamplingLoop`."""
        rows, each = len(draws.uniforms), len(draws.uniforms) // len(prompts)
        shares = [part.tolist() for part in torch.arange(len(prompts)).tensor_split(self.ranks.count)]
        with whole(model):
            if not shares[-1]:  # fewer prompts than processes
                return self.loop(model, prompts, draws)
            own = shares[self.ranks.number]
            mine = self.loop(model, prompts[own], _part(draws, slice(own[0] * each, (own[-1] + 1) * each)))
        found = self._together(mine, [len(share) * each for share in shares])
        assert len(found.mask) == rows
        return found

    def _together(self, mine: Rollout, rows: Sequence[int]) -> Rollout:
        values = {one.name: getattr(mine, one.name) for one in fields(Rollout)}
        gathered = {
            name: self.ranks.gather_rows(value.to(torch.uint8) if value.dtype == torch.bool else value, rows).to(
                value.dtype
            )
            for name, value in values.items()
            if value is not None
        }
        return Rollout(**gathered)


def _part(draws: TokenDraws, rows: slice) -> TokenDraws:
    """The draws of some rows, before the first of them."""
    greedy = None if draws.greedy is None else draws.greedy[rows]
    eos = None if draws.eos < 0 else draws.eos
    return TokenDraws(draws.uniforms[rows], eos, greedy, draws.truncation, draws.tokens.device, draws.vocabulary)
