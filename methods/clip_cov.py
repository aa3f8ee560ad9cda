"""Clip-Cov: leave out a few tokens whose probability moves with the advantage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.covariance import covariance
from vcpo_bench.methods.core.masking import as_number, within
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import integer, number


@dataclass(frozen=True, kw_only=True)
class ClipCov(Clip):
    """PPO's clip, and a random few unclipped tokens with a covariance in (floor, ceiling) dropped (2505.22617).

    max(1, int(share n)) of the n tokens are drawn from that band, with a generator seeded by `seed` and `now`, so
    that the method is a pure function of its batch. Which token is drawn depends on the order of the rows.
    """

    name: ClassVar[str] = "clip-cov"
    summary: ClassVar[str] = "token clip, and a random few high-covariance tokens left out"
    reference: ClassVar[str] = "Entropy mechanism 2505.22617"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r, 0 where clipped or drawn; cov = (A - mean A)(log pi - mean log pi)"
    differences: ClassVar[tuple[str, ...]] = (
        "verl and the authors draw with torch's global generator; only share=1 is deterministic there",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    share: float = number(2e-4, minimum=0, maximum=1)
    floor: float = number(1.0)
    ceiling: float = number(5.0)
    seed: int = integer(0, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """PPO's weight without the drawn tokens."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        kept = within(ratio, *self.limits(ev.advantage, ratio.dtype))
        cov = covariance(ev)
        band = (cov > self.floor) & (cov < self.ceiling) & ev.rows.mask & kept.bool()
        kept = kept * as_number(~self._draw(ev, band), kept.dtype)
        return differentiated(ratio, kept, ev.pair("current", self.anchor).beyond(self.clamp))

    def _draw(self, ev: EvidenceView, band: Tensor) -> Tensor:
        """`[..., P, G, T]` bool, the tokens drawn from the band of each batch."""
        now = ev.batch.now
        step = int(now.max()) if isinstance(now, torch.Tensor) else now
        drawn = torch.zeros_like(band).reshape(-1, band.shape[-3:].numel())
        counts = (self.share * ev.rows.tokens).to(torch.int64).clamp(min=1).reshape(-1)
        for row, (one, count) in enumerate(zip(band.reshape(drawn.shape), counts.tolist(), strict=True)):
            candidates = one.nonzero().squeeze(-1)
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
            order = torch.randperm(len(candidates), generator=generator).to(candidates.device)
            drawn[row, candidates[order[:count]]] = True
        return drawn.reshape(band.shape)
