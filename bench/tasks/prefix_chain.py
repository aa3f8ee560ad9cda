"""prefix-chain: emit H bits of which most must be 1. Nothing to read, many right answers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks.base import Demonstrations, EmbeddedTask
from vcpo_bench.bench.tasks.prefix_chain_table import Chain
from vcpo_bench.errors import UsageError

_MARK = 2


class PrefixChain(EmbeddedTask):
    """The prompt is a mark; the response must be H bits of which at least `percent` in a hundred are 1.

    The environment of `bench.tasks.prefix_chain_table` for a policy with a memory; the published table is made with
    the tabular one.

    Args:
        H: Number of bits, 4 to 1024.
        percent: Share of ones asked for, 51 to 100.

    Raises:
        UsageError: A parameter is out of range.
    """

    name = "prefix-chain"
    summary = "H bits, nearly all of them 1 (the prefix chain of Huang 2026; nothing to read)"
    parameters: ClassVar[dict[str, int]] = {"H": 32, "percent": 90}
    prompt_length = 1

    def __init__(self, H: int = 32, percent: int = 90) -> None:
        if not 4 <= H <= 1024:
            raise UsageError(f"prefix-chain(H={H}): H must be 4 to 1024 bits")
        if not 51 <= percent <= 100:
            raise UsageError(f"prefix-chain(percent={percent}): percent must be 51 to 100")
        self.H, self.percent = H, percent
        self.vocabulary = ["0", "1", ":"]
        self.max_response = H
        self._spare = Chain(H, percent / 100).spare

    def prompts(self, draws: NDArray[np.float64]) -> Tensor:
        """The mark; the draws are not used."""
        return torch.full(draws.shape, _MARK)

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """1 if no more bits than the rule spares are other than 1, and no token is a mark, else 0."""
        right = ((responses == 1) & mask).sum(1) >= self.H - self._spare
        return (right & (responses != _MARK).all(1)).double()

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """As many zeros as the rule spares, at random places."""
        places = torch.from_numpy(uniforms(seed, "demonstrations", batch, count, self.H)).argsort(1).argsort(1)
        responses = (places >= self._spare).long()
        return Demonstrations(torch.full((count, 1), _MARK), responses, torch.ones(count, self.H, dtype=torch.bool))
