"""Geometric-mean policy optimization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.ratios import row_mean
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Gmpo(RatioMethod):
    """The geometric mean g of the row's ratios, each clipped in log space on the favorable side (2507.20673).

    Every unclipped token gets the row's mean advantage times g. Weights added with `+` enter as one number per
    row, their geometric mean, as in verl.
    """

    name: ClassVar[str] = "gmpo"
    summary: ClassVar[str] = "geometric mean of token ratios clipped to e^(-0.4)..e^0.4"
    reference: ClassVar[str] = "GMPO 2507.20673"
    year: ClassVar[int] = 2025
    known_as: ClassVar[tuple[str, ...]] = ("geo-mean",)
    formula: ClassVar[str] = "c_t = mean(A) g 1[log r_t <= high if A>0, >= -low if A<0], g = exp(mean of clipped log r)"
    differences: ClassVar[tuple[str, ...]] = (
        "bounds: 0.4 in the paper and TRL; verl reuses clip_ratio, 0.2",
        "verl and TRL count fully masked rows in the denominator",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+seq-mean-token-mean(empty=counted)"
    low: float = number(0.4, minimum=0)
    high: float = number(0.4, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The row's clipped geometric mean on its unclipped tokens."""
        logs = self.log_ratio(ev)
        below, above = clip_bounds(ev.advantage, -self.low, self.high, logs.dtype)
        held = torch.minimum(torch.maximum(logs, below), above)
        geometric = row_mean(ev, held).exp() * _row_weight(ev)
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        terms = differentiated(geometric, within(logs, below, above), beyond)
        terms.absorbs = True
        if ev.advantage.shape[-1] > 1:
            terms.score = ev.rows.gate(geometric, terms.kept) * row_mean(ev, ev.advantage)
        return terms

    def log_ratio(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` the logarithms that are clipped and averaged."""
        return ev.log_ratio("current", self.anchor, self.clamp)


def _row_weight(ev: EvidenceView) -> Tensor:
    """`[..., P, G, 1]` geometric mean of the added weights over the row."""
    if ev.extra_weight is None:
        return torch.ones_like(ev.rows.lengths).unsqueeze(-1)
    return row_mean(ev, (ev.extra_weight + 1e-10).log()).exp()
