"""PPO's clipped surrogate at token level."""

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
class Clip(RatioMethod):
    """c = A r unless A > 0 and r > 1 + high, or A < 0 and r < 1 - low (PPO 1707.06347, equation 7)."""

    name: ClassVar[str] = "clip"
    summary: ClassVar[str] = "token ratio, gradient off outside 1 +- 0.2 on the outward side"
    reference: ClassVar[str] = "PPO 1707.06347"
    year: ClassVar[int] = 2017
    known_as: ClassVar[tuple[str, ...]] = ("ppo", "ppo-clip")
    formula: ClassVar[str] = "c = A r, 0 where A>0 and r>1+high or A<0 and r<1-low"
    differences: ClassVar[tuple[str, ...]] = (
        "log-ratio clamp: +-20 in verl and SkyRL (gradient 0 beyond), none in TRL, slime, AReaL, NeMo-RL",
        "anchor: PPO and most frameworks clip against the proximal policy; here against the behavior policy by default",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)

    def limits(self, advantage: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Smallest and largest ratio with a gradient, of the shape of the advantage."""
        return clip_bounds(advantage, 1 - self.low, 1 + self.high, dtype)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio with clipped tokens at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        kept = within(ratio, *self.limits(ev.advantage, ratio.dtype))
        return differentiated(ratio, kept, ev.pair("current", self.anchor).beyond(self.clamp))
