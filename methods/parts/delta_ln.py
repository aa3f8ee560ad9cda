"""Rows weighted by a power of their length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.denominators import to_row_shape, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class DeltaL(Aggregation):
    """N = L_i^-alpha / (M sum_j L_j^-alpha): minimum-variance length weights (Delta-L 2509.07558)."""

    name: ClassVar[str] = "delta-ln"
    summary: ClassVar[str] = "rows weighted by a power of their length"
    reference: ClassVar[str] = "Delta-L normalization 2509.07558"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = L_i^-alpha / (T_max sum_j L_j^-alpha)"
    alpha: float = number(0.75, minimum=0)
    horizon: float = number(0, minimum=0)

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        horizon = self.horizon or ev.rows.mask.shape[-1]
        power = where_tokens(ev, ev.rows.divisor**-self.alpha)
        return power / (horizon * to_row_shape(power.sum(ROW_AXES).clamp(min=torch.finfo(power.dtype).tiny)))
