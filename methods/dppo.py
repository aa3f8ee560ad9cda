"""DPPO: trust region by divergence of the token's probability instead of its ratio."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.gates import gate
from vcpo_bench.methods.method import RatioMethod, Terms
from vcpo_bench.methods.params import choice, flag, number


@dataclass(frozen=True, kw_only=True)
class Dppo(RatioMethod):
    """c = A min(r, cap) unless the token has moved too far outwards (DPPO 2602.04879).

    ``divergence=tv``: off where A > 0 and p - q > high, or A <= 0 and p - q < -low, p and q the probabilities under
    current and anchor. ``divergence=kl``: off where the Bernoulli KL(q || p) exceeds the bound on the same side.
    ``divergence=ratio`` is PPO's own rule, off where r > 1 + high or r < 1 - low. ``live=on`` differentiates the
    ratio, which has no gradient where the clamp holds it (SkyRL). A = 0 takes the negative side, as in the authors'
    code. ``mask`` names the anchor of the divergence when it differs from that of the ratio.
    """

    name: ClassVar[str] = "dppo-tv"
    summary: ClassVar[str] = "token ratio capped at 20, off where the probability moved more than 0.2 outwards"
    reference: ClassVar[str] = "DPPO 2602.04879"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A min(r, cap), 0 where A>0 and p-q>high or A<=0 and p-q<-low"
    differences: ClassVar[tuple[str, ...]] = (
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
        return frozenset({"proximal_logp"}) if "proximal" in (self.anchor, self.mask) else frozenset()

    def own_anchors(self) -> dict[str, str]:
        """Ratio and divergence."""
        return {"ratio": self.anchor, "divergence": self.anchor if self.mask == "same" else self.mask}

    def terms(self, ev: Evidence) -> Terms:
        """The capped ratio with the tokens outside the trust region at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp).clamp(max=self.cap)
        clipped = self._moved(ev)
        beyond = ev.beyond("current", self.anchor, self.clamp) if self.live else None
        if beyond is not None:
            clipped = clipped | beyond
        return Terms(weight=gate(ratio, ~clipped), clipped=clipped)

    def _moved(self, ev: Evidence) -> Tensor:
        anchor = self.anchor if self.mask == "same" else self.mask
        logs = {"behavior": "behavior_logp", "proximal": "proximal_logp"}
        if self.divergence == "ratio":
            moved = ev.ratio("current", anchor, self.clamp)
            return torch.where(ev.advantage > 0, moved > 1 + self.high, moved < 1 - self.low)
        p, q = ev.token_field("logp").exp(), ev.token_field(logs[anchor]).exp()
        if self.divergence == "tv":
            return torch.where(ev.advantage > 0, p - q > self.high, p - q < -self.low)
        kl = bernoulli_kl(q, p)
        return torch.where(ev.advantage > 0, (p > q) & (kl > self.high), (p < q) & (kl > self.low))


def bernoulli_kl(q: Tensor, p: Tensor) -> Tensor:
    """KL(Bernoulli(q) || Bernoulli(p)) with probabilities kept 1e-8 (float32: 1e-7) away from 0 and 1."""
    edge = 1e-8 if q.dtype == torch.float64 else 1e-7
    q, p = q.clamp(edge, 1 - edge), p.clamp(edge, 1 - edge)
    return q * (q / p).log() + (1 - q) * ((1 - q) / (1 - p)).log()
