"""BandPO: clip bounds that are the edge of a divergence ball, wide for unlikely tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.bernoulli import bernoulli_kl
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class BandPo(RatioMethod):
    """PPO's clip whose bounds are where D(q || p) = radius for two-valued policies (BandPO 2603.04918, theorem 1).

    q and p = r q are the token's probabilities under anchor and current. D is the KL divergence, the total variation
    |p - q|, or Pearson's chi-squared (p - q)^2 / (q (1 - q)). D grows on either side of r = 1, so that r lies within
    the bounds exactly where D <= radius: no equation is solved. The upper bound is at most `ceiling`.
    """

    name: ClassVar[str] = "bandpo"
    summary: ClassVar[str] = "token ratio, off outward where the token's two-way KL from the anchor exceeds 0.05"
    reference: ClassVar[str] = "BandPO 2603.04918"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A r, 0 where D(q||p) > radius or r > ceiling on the outward side"
    differences: ClassVar[tuple[str, ...]] = (
        "the authors solve for the bounds by bisection; with `kl` the rule is that of dppo-kl, differentiated",
        "an option of the authors' code widens bounds narrower than 0.8 and 1.28; off in their scripts",
    )
    divergence: str = choice("kl", "tv", "chi2")
    radius: float = number(0.05, minimum=0)
    ceiling: float = number(100.0, minimum=1)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio with the tokens outside the ball at zero, on the outward side."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        outward = ev.advantage * logs > 0
        far = (self._measure(ev) > self.radius) | (logs > math.log(self.ceiling))
        return differentiated(ratio, ~(outward & far), ev.pair("current", self.anchor).beyond(self.clamp))

    def _measure(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` D of each token."""
        q, p = (ev.token_field(name).clamp(max=0.0).exp_() for name in (POLICY_FIELDS[self.anchor], "logp"))
        if self.divergence == "kl":
            return bernoulli_kl(q, p)
        moved = (p - q).abs()
        if self.divergence == "tv":
            return moved
        return moved * moved / (q * (1 - q)).clamp(min=torch.finfo(q.dtype).tiny)
