"""A baseline below the mean of the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class AsymRe(Baseline):
    """Group mean shifted by a negative delta, so that bad rows weigh less off policy (AsymRE 2506.20520)."""

    name: ClassVar[str] = "asymre"
    summary: ClassVar[str] = "reward minus a baseline set below the group mean"
    reference: ClassVar[str] = "AsymRE 2506.20520"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - (mean_G R + delta), delta < 0"
    delta: float = number(-0.1, maximum=0)

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return ev.reward - (group_mean(ev, ev.reward) + self.delta)
