"""Learn only from positive advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class PositiveOnly(Mask):
    """Learn only from tokens with a positive advantage (RAFT; PipelineRL's `relu_log_p_weights`)."""

    name: ClassVar[str] = "positive-only"
    summary: ClassVar[str] = "tokens with a negative advantage rejected"
    reference: ClassVar[str] = "RAFT 2304.06767; PipelineRL 2509.19128"
    year: ClassVar[int] = 2023
    formula: ClassVar[str] = "keep where A >= 0"
    host: ClassVar[str] = "token-tis"

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]`."""
        return ev.advantage >= 0
