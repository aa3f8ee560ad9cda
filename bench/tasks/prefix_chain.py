"""prefix-chain: emit H bits of which most must be 1. Nothing to read, many right answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations
from vcpo_bench.bench.tasks.token_task import TokenTask
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.naming.parameters import integer

_MARK = 2


@dataclass(frozen=True, kw_only=True)
class PrefixChain(TokenTask):
    """The prompt is a mark; the response must be H bits of which at least `percent` in a hundred are 1.

    Attributes:
        H: Number of bits.
        percent: Share of ones asked for, in percent.
    """

    name = "prefix-chain"
    summary = "H bits, nearly all of them 1 (the prefix chain of Huang 2026; nothing to read)"
    H: int = integer(32, minimum=4, maximum=1024)
    percent: int = integer(90, minimum=51, maximum=100)

    @property
    def prompt_length(self) -> int:
        """The mark."""
        return 1

    @property
    def vocabulary(self) -> list[str]:
        """The two bits and the mark."""
        return ["0", "1", ":"]

    @property
    def max_response(self) -> int:
        """The bits."""
        return self.H

    @property
    def spare(self) -> int:
        """Zeros that a response may have and still be right."""
        return self.H - math.ceil(self.percent / 100 * self.H - 1e-9)

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """The mark; the draws are not used."""
        return torch.full(draws.shape, _MARK)

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if at most `spare` bits are other than 1, and no token is a mark, else 0."""
        right = ((responses == 1) & mask).sum(1) >= self.H - self.spare
        return (right & (responses != _MARK).all(1)).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """As many zeros as a right answer may have, at random positions."""
        order = torch.from_numpy(uniforms(seed, "demonstrations", batch, count, self.H)).argsort(1).argsort(1)
        responses = (order >= self.spare).long()
        return Demonstrations(torch.full((count, 1), _MARK), responses, torch.ones(count, self.H, dtype=torch.bool))
