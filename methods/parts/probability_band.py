"""Reject by the change of probability instead of the ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import POLICY_FIELDS
from vcpo_bench.methods.core.ratios import segment_mean
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.methods.parts.band import Band
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class ProbabilityBand(Band):
    """Keep what has low <= p - q <= high: tokens by the change of their probability, rows by its mean or sum."""

    name: ClassVar[str] = "probability-band"
    summary: ClassVar[str] = "rows whose mean change of probability is outside -0.2..0.2 rejected"
    reference: ClassVar[str] = "ROLL train-infer filters"
    formula: ClassVar[str] = "keep where low <= p - q <= high"
    differences: ClassVar[tuple[str, ...]] = ()
    low: float = number(-0.2)
    high: float = number(0.2)

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1|T]`."""
        p, q = (ev.token_field(POLICY_FIELDS[policy]).exp() for policy in (self.of, self.anchor))
        change = p - q
        change = torch.where(ev.rows.mask, change, 0.0)
        if self.level == "segment":
            change = segment_mean(change, ev.rows.mask)
        elif self.level != "token":
            change = change.sum(-1, keepdim=True)
            if self.level == "geometric":
                change = change / ev.rows.divisor.unsqueeze(-1)
        return (change >= self.low) & (change <= self.high)
