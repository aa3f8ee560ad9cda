"""Reward minus the length-weighted mean of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.group_statistics import group_mean, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Opo(Baseline):
    """Length-weighted group mean: the optimal baseline if squared score norms grow with length (OPO 2505.23585)."""

    name: ClassVar[str] = "opo"
    summary: ClassVar[str] = "reward minus the length-weighted mean of its group"
    reference: ClassVar[str] = "OPO 2505.23585"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - sum_G L R / sum_G L"
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`; the plain mean where a group has no token."""
        length = torch.where(ev.rows.valid, ev.rows.lengths, 0.0).to(ev.reward.dtype)
        total = length.sum(-1, keepdim=True)
        weighted = (length * ev.reward).sum(-1, keepdim=True) / total.clamp(min=1)
        mean = torch.where(total > 0, weighted, group_mean(ev, ev.reward))
        return singletons(ev, ev.reward - mean, self.singleton)
