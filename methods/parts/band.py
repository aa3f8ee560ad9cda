"""Reject what has a ratio outside a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.ratios import log_of, segment_mean
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Band(RatioMask):
    """Keep what has low <= ratio <= high: token by token, or rows by their product or geometric mean.

    Geometric-mean bands are narrow (verl 0.999..1.001, SkyRL 0.99..1.01, NeMo-RL 0.999..1.002), the others wide.
    `level=segment` takes the geometric mean over each run of tokens in play.
    """

    name: ClassVar[str] = "band"
    summary: ClassVar[str] = "rows with a geometric-mean ratio outside 0.99..1.01 rejected"
    reference: ClassVar[str] = "Liu, Li et al. 2025, 'When Speed Kills Stability'"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep where low <= ratio <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl's new seq_mean_k1 bounds the mirrored ratio mu/theta; its 2025 option bounds theta/mu",
    )
    host: ClassVar[str] = "reinforce"
    level: str = choice("geometric", "token", "sequence", "segment")
    low: float = number(0.99, minimum=0)
    high: float = number(1.01, minimum=0)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]`."""
        if self.level == "token":
            value = ev.pair(self.of, self.anchor).raw
        elif self.level == "sequence":
            value = ev.pair(self.of, self.anchor).row_log.unsqueeze(-1)
        elif self.level == "geometric":
            value = ev.pair(self.of, self.anchor).row_mean_log.unsqueeze(-1)
        else:
            value = segment_mean(ev.pair(self.of, self.anchor).raw, ev.rows.mask)
        value = value.clamp(-self.clamp, self.clamp)
        return (value >= log_of(self.low)) & (value <= log_of(self.high))
