"""Sum over the tokens of a row, divided by a fixed horizon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.denominators import rows_in_denominator, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenSumNorm(Aggregation):
    """N = 1 / (n T_max) with a fixed horizon (Dr. GRPO 2503.20783); horizon 0 means the padded length T."""

    name: ClassVar[str] = "seq-mean-token-sum-norm"
    summary: ClassVar[str] = "token sum over a fixed horizon, mean over rows"
    reference: ClassVar[str] = "Dr. GRPO 2503.20783"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / (n T_max)"
    empty: str = choice("skipped", "counted")
    horizon: float = number(0, minimum=0)

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        horizon = self.horizon or ev.rows.mask.shape[-1]
        return where_tokens(ev, 1 / (horizon * rows_in_denominator(ev, self.empty)).expand_as(ev.rows.lengths))
