"""Masked importance sampling: a weight outside its band is zero instead of truncated."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.masking import gate
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
    formula: ClassVar[str] = "c = A w 1[low <= w <= cap]"
    differences: ClassVar[tuple[str, ...]] = ("TRL's default sequence_mask: cap 3, no lower bound",)
    low: float = number(0.125, minimum=0)

    def _split(self, ev: EvidenceView) -> tuple[Tensor, Tensor]:
        """The weight whatever its size, and where it is inside its band."""
        log_weight = self.log_weight(ev)
        out = ev.buffer() if log_weight.shape == ev.mask.shape else None
        return torch.exp(log_weight, out=out), ev.within(log_weight, log_of(self.low), log_of(self.cap))

    def _zeroed(self, ev: EvidenceView, weight: Tensor, inside: Tensor) -> Tensor:
        return self.normalized(ev, (ev.gated if weight.shape == ev.mask.shape else gate)(weight, inside))

    def weight(self, ev: EvidenceView) -> Tensor:
        """Zero outside the band."""
        return self._zeroed(ev, *self._split(ev))

    def terms(self, ev: EvidenceView) -> Terms:
        """Tokens outside the band count as clipped; what their weight is matters to the mean alone."""
        weight, inside = self._split(ev)
        return Terms(weight=weight if self.normalize == "off" else self._zeroed(ev, weight, inside), kept=inside)
