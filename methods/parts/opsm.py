"""Reject drifted rows with a negative advantage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Opsm(RatioMask):
    """Drop rows with A < 0 that have drifted: mean(log mu - log theta) > delta (DeepSeek-V3.2 2512.02556)."""

    name: ClassVar[str] = "opsm"
    summary: ClassVar[str] = "drifted rows with a negative advantage rejected"
    reference: ClassVar[str] = "DeepSeek-V3.2 2512.02556"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "reject where A<0 and mean_t(log mu - log theta) > delta"
    differences: ClassVar[tuple[str, ...]] = ("delta: unset in TRL, 1e-4 in slime; anchor mu in TRL, 'old' in slime",)
    host: ClassVar[str] = "clip"
    delta: float = number(0.05)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]`."""
        drift = -ev.pair(self.of, self.anchor).row_mean_log.unsqueeze(-1)
        return ~((ev.advantage < 0) & (drift > self.delta))
