"""Group sequence policy optimization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.ratios import row_mean
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Gspo(RatioMethod):
    """Clip of the length-normalized sequence ratio s, which is differentiated (GSPO 2507.18071, equation 5).

    Every token of an unclipped row gets s times the mean of the row's advantages. The aggregation acts on the
    sequence loss; with seq-mean-token-mean it is the paper's. The logarithm of s is clamped, gradient 0 beyond.
    `average=on` takes the row's mean advantage before clipping (AReaL); it matters for advantages per token only.
    """

    name: ClassVar[str] = "gspo"
    summary: ClassVar[str] = "sequence ratio per token (geometric mean), clipped at 3e-4 / 4e-4"
    reference: ClassVar[str] = "GSPO 2507.18071"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A s, 0 where A>0 and s>1+high or A<0 and s<1-low; s = (prod_t r_t)^(1/L)"
    differences: ClassVar[tuple[str, ...]] = (
        "verl forces seq-mean-token-mean and clamps log s at +10 inside the graph",
        "TRL combines the sequence ratio with any aggregation that is set (TRL#3823)",
        "the bounds fit fresh responses of thousands of tokens; an asynchronous run in verl clips 40% (verl#7356)",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    low: float = number(3e-4, minimum=0)
    high: float = number(4e-4, minimum=0)
    average: str = choice("off", "on")

    def terms(self, ev: EvidenceView) -> Terms:
        """The row's ratio on every token."""
        raw = ev.pair("current", self.anchor).row_mean_log.unsqueeze(-1)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        advantage, weighted = self._advantages(ev)
        kept = within(ratio, *clip_bounds(advantage, 1 - self.low, 1 + self.high, ratio.dtype))
        terms = differentiated(ratio, kept, raw.abs() > self.clamp)
        if ev.weighted_advantage.shape[-1] > 1:
            terms.score = row_mean(ev, weighted * ev.rows.gate(ratio, terms.kept))
        return terms

    def _advantages(self, ev: EvidenceView) -> tuple[Tensor, Tensor]:
        """The advantage that decides the clip, and the weighted one that the ratio multiplies."""
        if self.average == "off" or ev.advantage.shape[-1] == 1:
            return ev.advantage, ev.weighted_advantage
        mean = row_mean(ev, ev.advantage)
        return mean, mean if ev.extra_weight is None else mean * ev.extra_weight
