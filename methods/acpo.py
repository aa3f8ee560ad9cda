"""ACPO: PPO's clip with a range that follows the spread of the ratios among tokens of like probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import as_number, choose, within
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import integer, number


@dataclass(frozen=True, kw_only=True)
class Acpo(RatioMethod):
    """PPO's clip at 1 - e and 1 + e, e = clip(base + alpha sd, least, most) (ACPO 2606.22570).

    sd^2 is the population variance of the ratios, plus 1e-8, over the batch's tokens in the same of `bins` equal
    intervals of the current probability. Beyond `cap` the gradient is 0 where A < 0 (dual clip).
    """

    name: ClassVar[str] = "acpo"
    summary: ClassVar[str] = "token clip at 0.2 plus the spread of the ratios of like tokens, 0.5 at most"
    reference: ClassVar[str] = "ACPO 2606.22570"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r, 0 where A>0, r>1+e or A<0, r<1-e or r>cap; e = base + alpha sd(r | bin of p)"
    differences: ClassVar[tuple[str, ...]] = (
        "the spread is that of a micro-batch in the authors' code, here of the whole batch",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    base: float = number(0.2, minimum=0)
    alpha: float = number(1.0, minimum=0)
    least: float = number(0.05, minimum=0)
    most: float = number(0.5, minimum=0)
    bins: int = integer(5, minimum=1)
    cap: float = number(3.0, minimum=1)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio with clipped tokens at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        reach = self.reach_of_clip(ev, ratio)
        up, down = ev.advantage > 0, ev.advantage < 0
        below = choose(down, 1.0, -torch.inf, ratio.dtype) - torch.where(down, reach, 0.0)
        above = choose(up, 1.0, torch.inf, ratio.dtype) + torch.where(up, reach, 0.0)
        kept = within(ratio, below, above) * as_number(~(down & (ratio > self.cap)), ratio.dtype)
        return differentiated(ratio, kept, ev.pair("current", self.anchor).beyond(self.clamp))

    def reach_of_clip(self, ev: EvidenceView, ratio: Tensor) -> Tensor:
        """`[..., P, G, T]` e of each token."""
        shape, size = ratio.shape, ratio.shape[-3:].numel()
        edges = ratio.new_tensor([place / self.bins for place in range(1, self.bins)])
        bins = torch.bucketize(ev.token_field("logp").clamp(max=0.0).exp(), edges, right=True).reshape(-1, size)
        inside, flat = ev.rows.mask_float.reshape(-1, size), ratio.reshape(-1, size)

        def per_bin(value: Tensor) -> Tensor:
            """`[runs, tokens]` sum over the tokens in play of the token's bin."""
            sums = value.new_zeros(len(value), self.bins).scatter_add_(-1, bins, value * inside)
            return sums.gather(-1, bins)

        count = per_bin(torch.ones_like(flat)).clamp(min=1)
        centered = flat - per_bin(flat) / count
        spread = (per_bin(centered * centered) / count + 1e-8).sqrt()
        return (self.base + self.alpha * spread).clamp(self.least, self.most).reshape(shape)
