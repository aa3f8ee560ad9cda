"""KL-Cov: penalize the few tokens whose probability moves most with the advantage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.covariance import covariance, largest
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class KlCov(RatioMethod):
    """c = A r, and - coef sign(log r) on the `share` of tokens with the largest covariance (2505.22617)."""

    name: ClassVar[str] = "kl-cov"
    summary: ClassVar[str] = "unclipped ratio, |log r| penalty on the few highest-covariance tokens"
    reference: ClassVar[str] = "Entropy mechanism 2505.22617"
    year: ClassVar[int] = 2025
    pulls: ClassVar[bool] = True
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r - coef sign(log r) 1[token among the largest covariances]"
    differences: ClassVar[tuple[str, ...]] = ("coef: 1 in verl's function, 0.1 in its configuration",)
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)+token-mean"
    share: float = number(2e-4, minimum=0, maximum=1)
    coef: float = number(1.0, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio, and the penalty of the chosen tokens."""
        beyond = ev.pair("current", self.anchor).beyond(self.clamp)
        ratio = ev.ratio("current", self.anchor, self.clamp)
        count = (self.share * ev.rows.tokens).to(torch.int64).clamp(min=1).minimum(ev.rows.tokens.to(torch.int64))
        chosen = largest(covariance(ev), ev.rows.mask, count)
        penalty = torch.where(chosen, -self.coef * ev.pair("current", self.anchor).raw.sign(), 0.0)
        return Terms(weight=ratio, addend=penalty, kept=None if beyond is None else ~beyond)
