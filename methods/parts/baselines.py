"""Baselines over the rows of a group or of the batch. All of them are functions of rewards and lengths only."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.params import choice, number
from vcpo_bench.methods.parts.base import Baseline

TINY = 1e-8
"""A standard deviation at or below this is zero: the advantage is then 0, not dust divided by dust."""


def group_count(ev: Evidence) -> Tensor:
    """``[..., P, 1]`` rows in play of each group, at least 1."""
    return ev.rows.sum(-1, keepdim=True).clamp(min=1)


def group_mean(ev: Evidence, value: Tensor) -> Tensor:
    """``[..., P, 1]`` mean of ``value[..., P, G]`` over the rows in play of each group."""
    return torch.where(ev.rows, value, 0.0).sum(-1, keepdim=True) / group_count(ev)


def group_std(ev: Evidence, ddof: int = 0) -> Tensor:
    """``[..., P, 1]`` standard deviation of the rewards of each group; 0 where it is undefined."""
    count = group_count(ev)
    centred = torch.where(ev.rows, ev.reward - group_mean(ev, ev.reward), 0.0)
    squares = (centred * centred).sum(-1, keepdim=True)
    return torch.where(count > ddof, squares / (count - ddof).clamp(min=1), 0.0).sqrt()


def over_std(centred: Tensor, std: Tensor, eps: float) -> Tensor:
    """``centred / (std + eps)``, and 0 where the standard deviation is."""
    return torch.where(std > TINY, centred / (std + eps).clamp(min=TINY), 0.0)


@dataclass(frozen=True, kw_only=True)
class Grpo(Baseline):
    """Group mean over group standard deviation (GRPO 2402.03300); 0 when all rewards of the group are equal."""

    name: ClassVar[str] = "grpo"
    summary: ClassVar[str] = "group mean over group standard deviation (the comparison default, population std)"
    reference: ClassVar[str] = "GRPO 2402.03300"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "A = (R - mean_G R) / (std_G R + eps)"
    std: str = choice("population", "sample")
    eps: float = number(0.0, minimum=0)

    def advantage(self, ev: Evidence) -> Tensor:
        """``[..., P, G]``."""
        std = group_std(ev, ddof=int(self.std == "sample"))
        return over_std(ev.reward - group_mean(ev, ev.reward), std, self.eps)


@dataclass(frozen=True, kw_only=True)
class GroupMean(Baseline):
    """Reward minus the mean of its group (Dr. GRPO 2503.20783)."""

    name: ClassVar[str] = "group-mean"
    summary: ClassVar[str] = "reward minus its group's mean"
    reference: ClassVar[str] = "Dr. GRPO 2503.20783"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - mean_G R"

    def advantage(self, ev: Evidence) -> Tensor:
        """``[..., P, G]``."""
        return ev.reward - group_mean(ev, ev.reward)


@dataclass(frozen=True, kw_only=True)
class Raw(Baseline):
    """The reward itself (Williams 1992)."""

    name: ClassVar[str] = "raw"
    summary: ClassVar[str] = "the reward, no baseline"
    reference: ClassVar[str] = "REINFORCE, Williams 1992"
    year: ClassVar[int] = 1992
    formula: ClassVar[str] = "A = R"

    def advantage(self, ev: Evidence) -> Tensor:
        """``[..., P, G]``."""
        return ev.reward
