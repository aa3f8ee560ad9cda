"""Group expectation policy optimization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Gepo(RatioMethod):
    """Clip of p_i / E, p and q the length-normalized row probabilities, E the q-weighted mean of q (2508.17850).

    E = sum q^2 / sum q over the group. `variant=plus` uses the row's own q where the mean k3 of the row is below
    `near`; `variant=expected` divides by the q-weighted mean of p instead, with its gradient. `scope=batch`
    takes the whole batch as one group, as the authors' trainer does with its micro-batch.
    """

    name: ClassVar[str] = "gepo"
    summary: ClassVar[str] = "row probability over the group's expected behavior probability, clipped"
    reference: ClassVar[str] = "GEPO 2508.17850"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A p/E, 0 where clipped; p = exp(mean log pi), q = exp(mean log mu), E = sum q^2/sum q"
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)
    scope: str = choice("group", "batch")
    variant: str = choice("plain", "plus", "expected")
    near: float = number(0.1, minimum=0)

    @property
    def reach(self) -> Reach:
        """The group, or the batch, over which it takes the expectation."""
        return Reach(Scope.BATCH if self.scope == "batch" else Scope.GROUP)

    def terms(self, ev: EvidenceView) -> Terms:
        """The row's ratio to the group expectation."""
        raw = self._row_mean(ev, "current") - self._log_expectation(ev)
        raw = torch.where(ev.rows.has_tokens, raw, 0.0).unsqueeze(-1)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        kept = within(ratio, *clip_bounds(ev.advantage, 1 - self.low, 1 + self.high, ratio.dtype))
        terms = differentiated(ratio, kept, raw.abs() > self.clamp)
        if self.variant == "expected":
            terms.score = self._through_expectation(ev, ev.rows.gate(ratio, terms.kept))
        return terms

    def _through_expectation(self, ev: EvidenceView, weight: Tensor) -> Tensor:
        """`[..., P, G, 1]` own term minus the row's share of what moving E does to every row of the group."""
        own = torch.where(ev.rows.mask, ev.weighted_advantage * weight, 0.0).sum(-1) / ev.rows.divisor
        log_q = torch.where(ev.rows.has_tokens, self._row_mean(ev, self.anchor), -torch.inf)
        joint = log_q + self._row_mean(ev, "current")
        share = torch.exp(joint - torch.logsumexp(joint, self._axes, keepdim=True))
        share = torch.where(torch.isfinite(share), share, 0.0)
        return (own - share * own.sum(self._axes, keepdim=True)).unsqueeze(-1)

    @property
    def _axes(self) -> tuple[int, ...]:
        return (-1,) if self.scope == "group" else (-2, -1)

    def _row_mean(self, ev: EvidenceView, policy: str) -> Tensor:
        return ev.token_field(POLICY_FIELDS[policy]).sum(-1) / ev.rows.divisor

    def _log_expectation(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` log E, by log-sum-exp."""
        own = self._row_mean(ev, self.anchor)
        log_q = torch.where(ev.rows.has_tokens, own, -torch.inf)
        other = log_q if self.variant != "expected" else self._row_mean(ev, "current")
        total = torch.logsumexp(log_q, self._axes, keepdim=True)
        expected = (torch.logsumexp(log_q + other, self._axes, keepdim=True) - total).expand_as(own)
        if self.variant != "plus":
            return expected
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        k3 = torch.where(ev.rows.mask, torch.exp(-logs) - 1 + logs, 0.0).sum(-1) / ev.rows.divisor
        return torch.where(k3 < self.near, own, expected)
