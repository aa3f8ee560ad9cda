"""A plain sum over tokens, or over a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.denominators import where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class TokenSum(Aggregation):
    """N = 1 / divisor: the plain sum, or a sum over a configured constant (Tinker, PipelineRL)."""

    name: ClassVar[str] = "token-sum"
    summary: ClassVar[str] = "plain sum over tokens, over a constant"
    reference: ClassVar[str] = "Tinker; PipelineRL 2509.19128"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.ROW
    formula: ClassVar[str] = "N = 1 / divisor"
    divisor: float = number(1, minimum=1e-12)

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return where_tokens(ev, torch.full_like(ev.rows.lengths, 1 / self.divisor))
