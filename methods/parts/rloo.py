"""Reward minus the mean of the other rows of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_count, group_mean, singletons
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Rloo(Baseline):
    """Leave-one-out: reward minus the mean of the others (RLOO 2402.14740), n/(n-1) (R - mean)."""

    name: ClassVar[str] = "rloo"
    summary: ClassVar[str] = "reward minus the mean of the other rows of its group"
    reference: ClassVar[str] = "RLOO 2402.14740"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "A = n/(n-1) (R - mean_G R)"
    differences: ClassVar[tuple[str, ...]] = ("group of one: raw reward in verl's loop, 0 in its vectorized version",)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        count = group_count(ev)
        centered = ev.reward - group_mean(ev, ev.reward)
        return singletons(ev, centered * count / (count - 1).clamp(min=1), self.singleton)
