"""Trajectory balance with asynchrony."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.batch import fields_of
from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Tba(Method):
    """Squared trajectory-balance error with the group's own estimate of the partition function (TBA 2503.18929).

    The loss of a row is (beta/2) (log Z + log pi - log pi_anchor - R/beta)^2 with log Z the group mean of
    R/beta - (log pi - log pi_anchor), detached. Its gradient coefficient is
    (R - mean R) - beta (l - mean l), l the row's log-ratio to the anchor. It holds for any behavior policy.
    """

    name: ClassVar[str] = "tba"
    summary: ClassVar[str] = "trajectory-balance regression on reward and row log-ratio, no importance weight"
    reference: ClassVar[str] = "TBA 2503.18929"
    year: ClassVar[int] = 2025
    pulls: ClassVar[bool] = True
    sees: ClassVar[Scope] = Scope.GROUP
    formula: ClassVar[str] = "c = A - beta (l - mean_G l), l = sum_t log pi/pi_anchor"
    differences: ClassVar[tuple[str, ...]] = (
        "the paper's anchor is the frozen reference policy (anchor=reference); the default here needs no extra model",
    )
    paper_parts: ClassVar[str] = "group-mean+seq-mean-token-sum"
    beta: float = number(0.05, minimum=0)
    anchor: str = choice("behavior", "reference", "proximal")

    def own_needs(self) -> frozenset[str]:
        """The anchor's log-probabilities."""
        return fields_of(self.anchor)

    def own_anchors(self) -> dict[str, str]:
        """The anchor of the regression."""
        return {"trajectory balance": self.anchor}

    def terms(self, ev: EvidenceView) -> Terms:
        """The advantage, and the centered log-ratio of the row."""
        row = ev.pair("current", self.anchor).row_log
        centered = torch.where(ev.rows.valid, row - group_mean(ev, row), 0.0)
        return Terms(addend=-self.beta * centered.unsqueeze(-1).expand(ev.rows.mask.shape))
