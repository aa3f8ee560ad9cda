"""Reject a whole row because of a single token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Veto(RatioMask):
    """Reject the whole row when any token in play has a ratio below `low` or above `high`."""

    name: ClassVar[str] = "veto"
    summary: ClassVar[str] = "rows with a token whose ratio is below 1e-4 rejected"
    reference: ClassVar[str] = "verl rollout_token_veto_threshold; SkyRL outlier masking"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep the row when low <= min_t r_t and max_t r_t <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl's 2025 helper ignores it unless a rejection option is also set (VCPO and VESPO carry that code)",
    )
    host: ClassVar[str] = "reinforce"
    low: float = number(1e-4, minimum=0)
    high: float = number(math.inf, minimum=0)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1]`."""
        value = ev.pair(self.of, self.anchor).raw
        outside = ((value < log_of(self.low)) | (value > log_of(self.high))) & ev.rows.mask
        return ~outside.any(-1, keepdim=True)
