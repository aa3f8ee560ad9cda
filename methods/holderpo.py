"""HolderPO: a sequence ratio that is a power mean of the token ratios."""

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
class HolderPo(RatioMethod):
    """Loss -A s, s = (mean_t r_t^p)^(1/p) over the row, clipped as PPO clips (HolderPO 2605.12058).

    Hence c_t = A s r_t^p / mean(r^p): `power` 1 is the arithmetic mean, 0 the geometric one of GSPO, and the larger it
    is, the more the gradient gathers on tokens with large ratios.
    """

    name: ClassVar[str] = "holderpo"
    summary: ClassVar[str] = "power mean of the row's token ratios, clipped at 0.2"
    reference: ClassVar[str] = "HolderPO 2605.12058"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c_t = A s r_t^p / mean(r^p), 0 where A>0, s>1+high or A<0, s<1-low; s = mean(r^p)^(1/p)"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper lowers the exponent while it trains; here it is fixed, 1 as in the authors' code without a schedule",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    power: float = number(1.0, minimum=-20, maximum=20)
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The row's power mean, shared out among its tokens."""
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        log_mean, share = self._mean(ev, logs)
        mean = log_mean.clamp(-self.clamp, self.clamp).exp()
        kept = within(mean, *clip_bounds(ev.advantage, 1 - self.low, 1 + self.high, mean.dtype))
        return differentiated(mean * share, kept, ev.pair("current", self.anchor).beyond(self.clamp))

    def _mean(self, ev: EvidenceView, logs: Tensor) -> tuple[Tensor, Tensor]:
        """Log of the power mean `[..., P, G, 1]`, and r^p / mean(r^p) `[..., P, G, T]`."""
        if self.power == 0:
            return row_mean(ev, logs), torch.ones_like(logs)
        powers = torch.where(ev.rows.mask, logs * self.power, -torch.inf)
        top = powers.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        scaled = (powers - top).exp()  # the largest is 1
        mean = row_mean(ev, scaled).clamp(min=torch.finfo(logs.dtype).tiny)
        return (mean.log() + top) / self.power, scaled / mean
