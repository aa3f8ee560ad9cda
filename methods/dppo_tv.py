"""DPPO: trust region by divergence of the token's probability instead of its ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS, fields_of
from vcpo_bench.methods.core.bernoulli import bernoulli_kl
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import choose, within
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, flag, number


@dataclass(frozen=True, kw_only=True)
class Dppo(RatioMethod):
    """c = A min(r, cap) unless the token has moved too far outwards (DPPO 2602.04879).

    `divergence=tv`: off where A > 0 and p - q > high, or A <= 0 and p - q < -low, p and q the probabilities under
    current and anchor. `divergence=kl`: off where the Bernoulli KL(q || p) exceeds the bound on the same side.
    `divergence=ratio` is PPO's own rule, off where r > 1 + high or r < 1 - low. `live=on` differentiates the
    ratio, whose gradient is 0 where the clamp holds it constant (SkyRL). A = 0 takes the negative side, as in the
    authors' code. `mask` names the anchor of the divergence when it differs from that of the ratio.
    """

    name: ClassVar[str] = "dppo-tv"
    summary: ClassVar[str] = "token ratio capped at 20, off where the probability moved more than 0.2 outwards"
    reference: ClassVar[str] = "DPPO 2602.04879"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A min(r, cap), 0 where A>0 and p-q>high or A<=0 and p-q<-low"
    differences: ClassVar[tuple[str, ...]] = (
        "bounds: 0.15 in verl's script of the authors, 0.2 by default in TRL",
        "cap: 20 in verl's docs, 3 in effect there, 10 in the authors' code; SkyRL differentiates r with no cap",
        "prime-rl's former default adds 2 tau log r on all tokens: dppo-tv(cap=inf)+kl(kind=k2)",
    )
    divergence: str = choice("tv", "kl", "ratio")
    live: bool = flag(False)
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)
    cap: float = number(20.0, minimum=0)
    mask: str = choice("same", "behavior", "proximal")

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, where a ratio refers to it."""
        return fields_of(self.anchor, self.mask)

    def own_anchors(self) -> dict[str, str]:
        """Ratio and divergence."""
        return {"ratio": self.anchor, "divergence": self.anchor if self.mask == "same" else self.mask}

    def terms(self, ev: EvidenceView) -> Terms:
        """The capped ratio with the tokens outside the trust region at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        kept = within(self._measure(ev), *bounds_of(ev.advantage, self._floor, self._ceiling, ratio.dtype))
        beyond = ev.pair("current", self.anchor).beyond(self.clamp) if self.live else None
        capped = ratio.clamp(max=self.cap)
        terms = differentiated(capped, kept, beyond)
        terms.capped = ev.pair("current", self.anchor).outside(-math.inf, log_of(self.cap))
        return terms

    @property
    def _floor(self) -> float:
        return 1 - self.low if self.divergence == "ratio" else -self.low

    @property
    def _ceiling(self) -> float:
        return 1 + self.high if self.divergence == "ratio" else self.high

    def _measure(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` how far the token has moved, positive upwards (the ratio itself for `ratio`)."""
        anchor = self.anchor if self.mask == "same" else self.mask
        if self.divergence == "ratio":
            return ev.ratio("current", anchor, self.clamp)
        p, q = ev.token_field("logp").exp(), ev.token_field(POLICY_FIELDS[anchor]).exp()
        if self.divergence == "tv":
            return p.sub_(q)
        kl = bernoulli_kl(q, p)
        return kl.mul_(p.sub_(q).sign_())


def bounds_of(advantage: Tensor, low: float, high: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """As in PPO, but A = 0 is on the negative side."""
    positive = advantage > 0
    return choose(positive, -torch.inf, low, dtype), choose(positive, high, torch.inf, dtype)
