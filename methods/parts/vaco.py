"""Reject tokens that push out further in rows far off policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Vaco(RatioMask):
    """In rows whose mean |r - 1| exceeds delta, drop the tokens that push further out (VACO 2603.01365).

    A token pushes out where sign(log r) A > 0. mean |r - 1| is twice an estimate of the total variation.
    """

    name: ClassVar[str] = "vaco"
    summary: ClassVar[str] = "outward-pushing tokens of rows with total variation above 0.05 rejected"
    reference: ClassVar[str] = "VACO 2603.01365"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "reject where mean_t |r-1| > delta and sign(log r) A > 0"
    host: ClassVar[str] = "reinforce"
    delta: float = number(0.05, minimum=0)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        logs = ev.log_ratio(self.of, self.anchor, self.clamp)
        moved = torch.where(ev.rows.mask, torch.expm1(logs).abs(), 0.0).sum(-1) / ev.rows.divisor
        return ~((moved.unsqueeze(-1) > self.delta) & (logs.sign() * ev.advantage > 0))
