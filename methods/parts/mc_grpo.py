"""Median and median absolute deviation of the group in place of mean and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.group_statistics import TINY, group_count, group_median
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class McGrpo(Baseline):
    """A = (R - median_G R) / (MAD_G R + eps), MAD = median_G |R - median_G R| (MC-GRPO 2601.22582).

    The median of an even number of rewards is the lower of the two in the middle. `rescale=on` multiplies by the
    group's size over its number of nonzero advantages, so that rows at the median do not dilute the group.
    """

    name: ClassVar[str] = "mc-grpo"
    summary: ClassVar[str] = "group median over median absolute deviation"
    reference: ClassVar[str] = "MC-GRPO 2601.22582"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A = (R - median_G R) / (MAD_G R + eps) * G / #nonzero"
    differences: ClassVar[tuple[str, ...]] = (
        "the authors sample one response more than they train on and leave one at the median out; it has A = 0 here",
        "binary rewards: MAD is mostly 0, so that eps = 1e-3 makes advantages of 1,000; the gradient clip then decides",
    )
    eps: float = number(1e-3, minimum=1e-8)
    rescale: str = choice("on", "off")

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        centered = ev.reward - group_median(ev, ev.reward, lower=True)
        spread = group_median(ev, centered.abs(), lower=True)
        advantage = torch.where(ev.rows.valid, centered / (spread + self.eps), 0.0)
        if self.rescale == "off":
            return advantage
        count = (advantage.abs() > TINY).sum(-1, keepdim=True).clamp(min=1)
        return advantage * group_count(ev) / count
