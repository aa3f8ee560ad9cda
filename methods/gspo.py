"""Group sequence policy optimization."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from vcpo_bench.methods.clip import or_beyond, outside
from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.method import RatioMethod, Terms
from vcpo_bench.methods.params import number


@dataclass(frozen=True, kw_only=True)
class Gspo(RatioMethod):
    """Clip of the length-normalised sequence ratio s, which is differentiated (GSPO 2507.18071, equation 5).

    Every token of an unclipped row gets s times the mean of the row's advantages. The aggregation acts on the
    sequence loss; with seq-mean-token-mean it is the paper's. The logarithm of s is clamped, gradient 0 beyond.
    """

    name: ClassVar[str] = "gspo"
    summary: ClassVar[str] = "sequence ratio per token (geometric mean), clipped at 3e-4 / 4e-4"
    reference: ClassVar[str] = "GSPO 2507.18071"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A s, 0 where A>0 and s>1+high or A<0 and s<1-low; s = (prod_t r_t)^(1/L)"
    differences: ClassVar[tuple[str, ...]] = (
        "verl forces seq-mean-token-mean and clamps log s at +10 inside the graph",
        "TRL combines the sequence ratio with whatever aggregation is set (TRL#3823)",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    low: float = number(3e-4, minimum=0)
    high: float = number(4e-4, minimum=0)

    def terms(self, ev: Evidence) -> Terms:
        """The row's ratio on every token."""
        raw = ev.row_mean_log_ratio("current", self.anchor).unsqueeze(-1)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        clipped = outside(ratio, ev.advantage, 1 - self.low, 1 + self.high)
        clipped = or_beyond(clipped, raw.abs() > self.clamp)
        weight = ratio.expand(clipped.shape).masked_fill(clipped, 0.0)
        if ev.signal.shape[-1] == 1:
            return Terms(weight=weight, clipped=clipped)
        total = torch.where(ev.mask, ev.signal * weight, 0.0).sum(-1) / ev.lengths.clamp(min=1)
        return Terms(weight=weight, score=total.unsqueeze(-1), clipped=clipped)
