"""Geometric-mean policy optimization."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.clip import or_beyond
from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.method import RatioMethod, Terms
from vcpo_bench.methods.params import number


@dataclass(frozen=True, kw_only=True)
class Gmpo(RatioMethod):
    """The geometric mean g of the row's ratios, each clipped in log space on the favorable side (2507.20673).

    Every unclipped token gets the row's mean advantage times g. Weights added with ``+`` enter as one number per
    row, their geometric mean, as in verl.
    """

    name: ClassVar[str] = "gmpo"
    summary: ClassVar[str] = "geometric mean of token ratios clipped to e^(-0.4)..e^0.4"
    reference: ClassVar[str] = "GMPO 2507.20673"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c_t = mean(A) g 1[log r_t <= high if A>0, >= -low if A<0], g = exp(mean of clipped log r)"
    differences: ClassVar[tuple[str, ...]] = (
        "bounds: 0.4 in the paper and TRL; verl reuses clip_ratio, 0.2",
        "verl and TRL count fully masked rows in the denominator",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+seq-mean-token-mean(empty=counted)"
    low: float = number(0.4, minimum=0)
    high: float = number(0.4, minimum=0)

    def terms(self, ev: Evidence) -> Terms:
        """The row's clipped geometric mean on its unclipped tokens."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        above = torch.where(ev.advantage > 0, self.high, torch.inf).to(logs.dtype)
        below = torch.where(ev.advantage < 0, -self.low, -torch.inf).to(logs.dtype)
        clipped = (logs > above) | (logs < below)
        inside = torch.minimum(torch.maximum(logs, below), above)
        if not ev.full:
            inside = torch.where(ev.mask, inside, 0.0)
        lengths = ev.lengths.clamp(min=1)
        geometric = (inside.sum(-1) / lengths).exp().unsqueeze(-1)
        clipped = or_beyond(clipped, ev.beyond("current", self.anchor, self.clamp))
        weight = (geometric * _row_weight(ev)).expand(clipped.shape).masked_fill(clipped, 0.0)
        if ev.advantage.shape[-1] == 1:
            return Terms(weight=weight, clipped=clipped, absorbs=True)
        mean = torch.where(ev.mask, ev.advantage, 0.0).sum(-1) / lengths
        return Terms(weight=weight, score=weight * mean.unsqueeze(-1), clipped=clipped, absorbs=True)


def _row_weight(ev: Evidence) -> Tensor:
    """``[..., P, G, 1]`` geometric mean of the added weights over the row."""
    if ev.applied is None:
        return torch.ones_like(ev.lengths).unsqueeze(-1)
    logs = torch.where(ev.mask, (ev.applied + 1e-10).log(), 0.0)
    return (logs.sum(-1) / ev.lengths.clamp(min=1)).exp().unsqueeze(-1)
