"""Asymmetric importance sampling policy optimization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import choose, within
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Aspo(RatioMethod):
    """c = A / r for A > 0, A r for A < 0, held at cap A where that weight exceeds the cap (ASPO 2510.06062).

    The flipped ratio of positive tokens lets unlikely ones learn more. PPO's clip is on the unflipped ratio. Tokens
    with an entropy above `entropy` use the bound `wide` instead of `eps`; the entropy is read only then.
    """

    name: ClassVar[str] = "aspo"
    summary: ClassVar[str] = "ratio inverted for A > 0, soft ceiling 3, token clip"
    reference: ClassVar[str] = "ASPO 2510.06062"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A min(1/r, cap) if A>0 (0 where r>1+eps), A min(r, cap) if A<0 (0 where r<1-eps)"
    differences: ClassVar[tuple[str, ...]] = (
        "authors' code: the parameters named low_entropy apply where the high-entropy mask is True",
    )
    eps: float = number(0.2, minimum=0)
    wide: float = number(0.4, minimum=0)
    entropy: float | str = number("off", minimum=0, words=("off",))
    cap: float = number(3.0, minimum=1)

    def own_needs(self) -> frozenset[str]:
        """The entropy, when bounds depend on it."""
        extra = frozenset() if self.entropy == "off" else frozenset({"entropy"})
        return super().own_needs() | extra

    def terms(self, ev: EvidenceView) -> Terms:
        """The flipped ratio, clipped and capped."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        positive, negative = ev.advantage > 0, ev.advantage < 0
        upper, lower = ratio.new_tensor(1 + self.eps), ratio.new_tensor(1 - self.eps)
        if not isinstance(self.entropy, str):
            bound = choose(ev.token_field("entropy") > self.entropy, self.wide, self.eps, ratio.dtype)
            upper, lower = 1 + bound, 1 - bound
        above, below = torch.where(positive, upper, torch.inf), torch.where(negative, lower, -torch.inf)
        flipped = logs * choose(positive, -1.0, 1.0, logs.dtype)
        capped = flipped > math.log(self.cap)
        terms = differentiated(flipped.clamp_(max=math.log(self.cap)).exp_(), within(ratio, below, above), None)
        terms.capped = capped
        return terms
