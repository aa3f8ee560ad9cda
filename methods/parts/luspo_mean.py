"""The aggregation of LUSPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.denominators import rows_in_denominator, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class LengthMean(Aggregation):
    """N = 1 / n on a row loss multiplied by its length (LUSPO 2602.05261): N = L_i * 1 / (L_i n)."""

    name: ClassVar[str] = "luspo-mean"
    summary: ClassVar[str] = "the sequence loss times its length, mean over rows"
    reference: ClassVar[str] = "LUSPO 2602.05261"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "N = 1 / n over all valid rows"

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return where_tokens(ev, 1 / rows_in_denominator(ev, "counted").expand_as(ev.rows.lengths))
