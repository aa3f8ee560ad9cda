"""Tapered off-policy REINFORCE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Topr(RatioMethod):
    """Weight 1 for rewarded rows, min(w, cap) for the others (TOPR 2503.14286).

    w is the ratio of the whole trajectory (`level=sequence`, the paper) or of the token (`level=token`, ROLL).
    A row is rewarded when its raw reward, not its advantage, is above 0.
    """

    name: ClassVar[str] = "topr"
    summary: ClassVar[str] = "no weight on rewarded rows, truncated sequence weight on the others"
    reference: ClassVar[str] = "TOPR 2503.14286"
    year: ClassVar[int] = 2025
    reads: ClassVar[frozenset[str]] = frozenset({"reward"})
    formula: ClassVar[str] = "c = A if R>0 else A min(w, cap)"
    differences: ClassVar[tuple[str, ...]] = ("ROLL takes the token ratio; the paper the ratio of the trajectory",)
    paper_parts: ClassVar[str] = "raw+seq-mean-token-sum"
    level: str = choice("sequence", "token")
    cap: float = number(1.0, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """One, or the truncated ratio."""
        rewarded, ratio = (ev.reward > 0).unsqueeze(-1), self._ratio(ev)
        weight = torch.where(rewarded, 1.0, ratio.clamp(max=self.cap))
        return Terms(weight=weight, capped=~rewarded & (ratio > self.cap))

    def _ratio(self, ev: EvidenceView) -> Tensor:
        if self.level == "token":
            return ev.ratio("current", self.anchor, self.clamp)
        return ev.pair("current", self.anchor).row_log.clamp(-self.clamp, self.clamp).exp().unsqueeze(-1)
