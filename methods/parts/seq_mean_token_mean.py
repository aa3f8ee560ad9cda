"""Mean over the tokens of a row, then over rows: the comparison default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.denominators import rows_in_denominator, to_row_shape, where_tokens
from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenMean(Aggregation):
    """N = 1 / (L_i n): mean over the tokens of a row, then over rows (GRPO 2402.03300, equation 3).

    `empty=counted` counts valid rows without tokens in n, as TRL and slime do; verl and ROLL leave them out.
    `over=tokens` divides the sum of row means by the number of tokens instead (prime-rl of 2025, sequence ratio).
    """

    name: ClassVar[str] = "seq-mean-token-mean"
    summary: ClassVar[str] = "every row counts the same (the comparison default)"
    reference: ClassVar[str] = "GRPO 2402.03300"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "N = 1 / (n L_i)"
    empty: str = choice("skipped", "counted")
    over: str = choice("rows", "tokens")

    def factor(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        tokens = to_row_shape(ev.rows.tokens.clamp(min=1))
        count = rows_in_denominator(ev, self.empty) if self.over == "rows" else tokens
        return where_tokens(ev, (ev.rows.divisor * count).reciprocal())
