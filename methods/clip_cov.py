"""Clip-Cov: leave out a few tokens whose probability moves with the advantage."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.clip import Clip, or_beyond
from vcpo_bench.methods.covariance import covariance, largest
from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.method import Terms
from vcpo_bench.methods.params import integer, number


@dataclass(frozen=True, kw_only=True)
class ClipCov(Clip):
    """PPO's clip, and a random few unclipped tokens with a covariance in (floor, ceiling) dropped (2505.22617).

    max(1, int(share n)) of the n tokens are drawn from that band. The draw depends on ``seed``, ``now`` and nothing
    else, so the method is a pure function of its batch.
    """

    name: ClassVar[str] = "clip-cov"
    summary: ClassVar[str] = "token clip, and a random few high-covariance tokens left out"
    reference: ClassVar[str] = "Entropy mechanism 2505.22617"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A r, 0 where clipped or drawn; cov = (A - mean A)(log pi - mean log pi)"
    differences: ClassVar[tuple[str, ...]] = (
        "verl and the authors draw with torch's global generator; only share=1 is deterministic there",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    share: float = number(2e-4, minimum=0, maximum=1)
    floor: float = number(1.0)
    ceiling: float = number(5.0)
    seed: int = integer(0, minimum=0)

    def terms(self, ev: Evidence) -> Terms:
        """PPO's weight without the drawn tokens."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        clipped = self.clipped(ratio, ev.advantage)
        cov = covariance(ev)
        band = (cov > self.floor) & (cov < self.ceiling) & ev.mask & ~clipped
        count = (self.share * ev.tokens).to(torch.int64).clamp(min=1).minimum(band.sum((-3, -2, -1)))
        drawn = largest(self._noise(ev), band, count)
        clipped = or_beyond(clipped | drawn, ev.beyond("current", self.anchor, self.clamp))
        return Terms(weight=ratio.masked_fill(clipped, 0.0), clipped=clipped)

    def _noise(self, ev: Evidence) -> Tensor:
        """``[..., P, G, T]`` uniform numbers, the same for every leading index."""
        now = ev.batch.now
        step = int(now.max()) if isinstance(now, Tensor) else now
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        noise = torch.rand(ev.mask.shape[-3:], generator=generator, dtype=torch.float64)
        return noise.to(ev.mask.device).expand(ev.mask.shape)
