"""Masked importance sampling: a weight outside its band is zero instead of truncated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.masking import gate, within
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Mis(Tis):
    """c = A w where low <= w <= cap, else 0 (sequence MIS); the zeroed tokens stay in the denominators."""

    name: ClassVar[str] = "mis"
    summary: ClassVar[str] = "detached sequence weight, rows outside 1/8..8 zeroed"
    reference: ClassVar[str] = "Liu, Li et al. 2025, 'When Speed Kills Stability'"
    known_as: ClassVar[tuple[str, ...]] = ("sequence-mask",)
    formula: ClassVar[str] = "c = A w 1[low <= w <= cap]"
    differences: ClassVar[tuple[str, ...]] = ("TRL's default sequence_mask: cap 3, no lower bound",)
    low: float = number(0.125, minimum=0)

    def _banded(self, ev: EvidenceView) -> tuple[Tensor, Tensor]:
        """The logarithm of the weight, and where it is inside its band."""
        logs = self.log_weight(ev)
        return logs, within(logs, log_of(self.low), log_of(self.cap))

    def _normalized_inside(self, ev: EvidenceView, logs: Tensor, inside: Tensor) -> Tensor:
        return self._normalized(ev, torch.where(inside.bool(), logs, -torch.inf))

    def weight(self, ev: EvidenceView) -> Tensor:
        """Zero outside the band."""
        logs, inside = self._banded(ev)
        if self.normalize != "off":
            return self._normalized_inside(ev, logs, inside)
        return gate(logs.exp(), inside)

    def terms(self, ev: EvidenceView) -> Terms:
        """Tokens outside the band count as clipped; what their weight is matters to the mean alone."""
        logs, inside = self._banded(ev)
        if self.normalize != "off":
            return Terms(weight=self._normalized_inside(ev, logs, inside), kept=inside)
        return Terms(weight=logs.exp(), kept=inside)
