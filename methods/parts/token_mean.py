"""Every token of the batch counts the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.denominators import to_row_shape, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class TokenMean(Aggregation):
    """N = 1 / number of tokens of the batch (DAPO 2503.14476, equation 8)."""

    name: ClassVar[str] = "token-mean"
    summary: ClassVar[str] = "every token of the batch counts the same"
    reference: ClassVar[str] = "DAPO 2503.14476"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / sum_i L_i"

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return where_tokens(ev, 1 / to_row_shape(ev.rows.tokens.clamp(min=1)).expand_as(ev.rows.lengths))
