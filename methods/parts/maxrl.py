"""Centered reward over the mean reward of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.group_statistics import TINY, group_mean
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class MaxRl(Baseline):
    """(R - mean)/mean, 0 where the group mean is not positive: maximum-likelihood weighting (MaxRL 2602.02710)."""

    name: ClassVar[str] = "maxrl"
    summary: ClassVar[str] = "centered reward over the group's mean reward"
    reference: ClassVar[str] = "MaxRL 2602.02710"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A = (R - mean_G R) / mean_G R"

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        mean = group_mean(ev, ev.reward)
        return torch.where(mean > TINY, (ev.reward - mean) / mean.clamp(min=TINY), 0.0)
