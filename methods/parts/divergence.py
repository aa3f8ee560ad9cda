"""Reject by an estimate of the KL divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Divergence(RatioMask):
    """Keep where an estimate of the KL divergence stays within bounds (TRM 2512.23075).

    l = log ratio; k1 = -l, k2 = l^2/2, k3 = e^l - 1 - l (verl's signs; `inverse=on` swaps the two policies, AReaL's).
    `reduce` takes each token's own value, or the mean, sum or maximum over the row.
    """

    name: ClassVar[str] = "divergence"
    summary: ClassVar[str] = "rows with a mean k3 above 0.01 rejected"
    reference: ClassVar[str] = "Trust-region masking 2512.23075"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep where low <= reduce_t k(l_t) <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl: k3 = r - 1 - log r, k1 = -log r; AReaL: k3 = 1/r - 1 + log r, k1 = +log r",
    )
    host: ClassVar[str] = "reinforce"
    kind: str = choice("k3", "k2", "k1", "ratio")
    reduce: str = choice("mean", "sum", "max", "token")
    inverse: str = choice("off", "on")
    low: float = number(-math.inf)
    high: float = number(0.01)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]`."""
        value = torch.where(ev.rows.mask, self._estimate(ev), 0.0)
        if self.reduce == "sum":
            value = value.sum(-1, keepdim=True)
        elif self.reduce == "mean":
            value = value.sum(-1, keepdim=True) / ev.rows.divisor.unsqueeze(-1)
        elif self.reduce == "max":
            value = torch.where(ev.rows.mask, value, -math.inf).amax(-1, keepdim=True)
            value = torch.where(torch.isfinite(value), value, 0.0)
        return (value >= self.low) & (value <= self.high)

    def _estimate(self, ev: EvidenceView) -> Tensor:
        logs = ev.log_ratio(self.of, self.anchor, self.clamp)
        logs = -logs if self.inverse == "on" else logs
        if self.kind == "k1":
            return -logs
        if self.kind == "k2":
            return logs * logs / 2
        return logs.exp() - (1 + logs) if self.kind == "k3" else logs.exp()
