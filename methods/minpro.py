"""MinPRO: the running minimum of prefix ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class MinPro(RatioMethod):
    """c_t = A r_t min_{j<t} r_j, clipped like PPO: the unstable prefix product replaced by its minimum (2601.22718).

    Written from the paper's description; no reference code was available.
    """

    name: ClassVar[str] = "minpro"
    summary: ClassVar[str] = "token ratio times the smallest ratio before it, clipped"
    reference: ClassVar[str] = "MinPRO 2601.22718"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c_t = A p_t, p_t = r_t min(1, min_{j<t} r_j), 0 where clipped outside 1-low..1+high"
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The prefix-minimum ratio with clipped tokens at zero."""
        ratio = self._prefix_minimum(ev)
        kept = within(ratio, *clip_bounds(ev.advantage, 1 - self.low, 1 + self.high, ratio.dtype))
        return differentiated(ratio, kept, ev.pair("current", self.anchor).beyond(self.clamp))

    def _prefix_minimum(self, ev: EvidenceView) -> Tensor:
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        lowest = logs.cummin(-1).values.clamp(max=0.0)
        before = torch.cat([torch.zeros_like(lowest[..., :1]), lowest[..., :-1]], -1)
        return (logs + before).exp()
