"""Reward minus the mean of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_mean, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class GroupMean(Baseline):
    """Reward minus the mean of its group (Dr. GRPO 2503.20783)."""

    name: ClassVar[str] = "group-mean"
    summary: ClassVar[str] = "reward minus its group's mean"
    reference: ClassVar[str] = "Dr. GRPO 2503.20783"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - mean_G R"
    differences: ClassVar[tuple[str, ...]] = ("Dr. GRPO is also an aggregation: seq-mean-token-sum-norm",)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)
