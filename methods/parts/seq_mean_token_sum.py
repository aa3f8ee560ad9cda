"""Sum over the tokens of a row, mean over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.denominators import rows_in_denominator, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenSum(Aggregation):
    """N = 1 / n: sum over the tokens of a row, mean over rows; unbiased for sequence importance sampling."""

    name: ClassVar[str] = "seq-mean-token-sum"
    summary: ClassVar[str] = "rows count in proportion to their length"
    reference: ClassVar[str] = "verl, loss_agg_mode"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / n"
    empty: str = choice("skipped", "counted")

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return where_tokens(ev, 1 / rows_in_denominator(ev, self.empty).expand_as(ev.rows.lengths))
