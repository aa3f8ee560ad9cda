"""Soft adaptive policy optimization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.masking import choose, gate
from vcpo_bench.methods.core.ratios import row_mean
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Sapo(RatioMethod):
    """c = A 4 sigma (1 - sigma) r, sigma = sigmoid(tau (r - 1)): a gate that never closes (SAPO 2511.20347).

    `level=sequence` puts the length-normalized sequence ratio in place of r and the row's mean advantage in place
    of A, as AReaL offers.
    """

    name: ClassVar[str] = "sapo"
    summary: ClassVar[str] = "smooth gate on the token ratio, sharper for A <= 0"
    reference: ClassVar[str] = "SAPO 2511.20347"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A 4 q (1-q) r, q = sigmoid(tau (r-1)), tau = tau_pos if A>0 else tau_neg"
    differences: ClassVar[tuple[str, ...]] = (
        "verl forces seq-mean-token-mean; AReaL uses token-mean",
        "TRL does not clamp log r, so a float32 ratio can overflow to NaN",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    tau_pos: float = number(1.0, minimum=0)
    tau_neg: float = number(1.05, minimum=0)
    level: str = choice("token", "sequence")

    def terms(self, ev: EvidenceView) -> Terms:
        """The gate times the ratio."""
        if self.level == "token":
            ratio = ev.ratio("current", self.anchor, self.clamp)
            beyond = ev.pair("current", self.anchor).beyond(self.clamp)
            kept = None if beyond is None else ~beyond
            return Terms(weight=self._soft(ratio, ev.advantage), kept=kept)
        raw = ev.pair("current", self.anchor).row_mean_log.unsqueeze(-1)
        mean = row_mean(ev, ev.advantage)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        weight = gate(self._soft(ratio, mean), raw.abs() <= self.clamp)
        applied = torch.ones_like(weight) if ev.extra_weight is None else ev.extra_weight
        return Terms(weight=weight, score=weight * mean * row_mean(ev, applied))

    def _soft(self, ratio: Tensor, advantage: Tensor) -> Tensor:
        tau = choose(advantage > 0, self.tau_pos, self.tau_neg, ratio.dtype)
        soft = torch.sigmoid(tau * (ratio - 1))
        return soft * (1 - soft) * ratio * 4
