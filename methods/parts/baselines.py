"""Baselines over the rows of a group or of the batch. All of them are functions of rewards and lengths only."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.naming.parameters import choice, number

TINY = 1e-8
"""A standard deviation at or below this is zero: the advantage is then 0, not dust divided by dust."""


def group_count(ev: Evidence) -> Tensor:
    """`[..., P, 1]` rows in play of each group, at least 1."""
    return ev.rows.sum(-1, keepdim=True).clamp(min=1)


def group_mean(ev: Evidence, value: Tensor) -> Tensor:
    """`[..., P, 1]` mean of `value[..., P, G]` over the rows in play of each group."""
    return torch.where(ev.rows, value, 0.0).sum(-1, keepdim=True) / group_count(ev)


def group_std(ev: Evidence, ddof: int = 0) -> Tensor:
    """`[..., P, 1]` standard deviation of the rewards of each group; 0 where it is undefined."""
    count = group_count(ev)
    centered = torch.where(ev.rows, ev.reward - group_mean(ev, ev.reward), 0.0)
    squares = (centered * centered).sum(-1, keepdim=True)
    return torch.where(count > ddof, squares / (count - ddof).clamp(min=1), 0.0).sqrt()


def over_std(centered: Tensor, std: Tensor, eps: float) -> Tensor:
    """`centered / (std + eps)`, and 0 where the standard deviation is."""
    return torch.where(std > TINY, centered / (std + eps).clamp(min=TINY), 0.0)


def singletons(ev: Evidence, advantage: Tensor, rule: str) -> Tensor:
    """Groups of one row keep their raw reward when `rule` is `raw`; else the advantage as it is."""
    return torch.where(group_count(ev) == 1, ev.reward, advantage) if rule == "raw" else advantage


@dataclass(frozen=True, kw_only=True)
class Grpo(Baseline):
    """Group mean over group standard deviation (GRPO 2402.03300); 0 when all rewards of the group are equal."""

    name: ClassVar[str] = "grpo"
    summary: ClassVar[str] = "group mean over group standard deviation (the comparison default, population std)"
    reference: ClassVar[str] = "GRPO 2402.03300"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "A = (R - mean_G R) / (std_G R + eps)"
    differences: ClassVar[tuple[str, ...]] = (
        "eps: 1e-6 verl, 1e-4 TRL and PipelineRL; sample std in all of them, population std in VCPO",
        "group of one: R/(1 + eps) in verl (singleton=raw), 0 elsewhere",
    )
    std: str = choice("population", "sample")
    eps: float = number(0.0, minimum=0)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        std = group_std(ev, ddof=int(self.std == "sample"))
        advantage = over_std(ev.reward - group_mean(ev, ev.reward), std, self.eps)
        return singletons(ev, advantage, self.singleton)


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

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)


@dataclass(frozen=True, kw_only=True)
class Raw(Baseline):
    """The reward itself (Williams 1992)."""

    name: ClassVar[str] = "raw"
    summary: ClassVar[str] = "the reward, no baseline"
    reference: ClassVar[str] = "REINFORCE, Williams 1992"
    year: ClassVar[int] = 1992
    formula: ClassVar[str] = "A = R"

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return ev.reward


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

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        count = group_count(ev)
        centered = ev.reward - group_mean(ev, ev.reward)
        return singletons(ev, centered * count / (count - 1).clamp(min=1), self.singleton)


@dataclass(frozen=True, kw_only=True)
class MaxRl(Baseline):
    """(R - mean)/mean, 0 where the group mean is not positive: maximum-likelihood weighting (MaxRL 2602.02710)."""

    name: ClassVar[str] = "maxrl"
    summary: ClassVar[str] = "centered reward over the group's mean reward"
    reference: ClassVar[str] = "MaxRL 2602.02710"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A = (R - mean_G R) / mean_G R"

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        mean = group_mean(ev, ev.reward)
        return torch.where(mean > TINY, (ev.reward - mean) / mean.clamp(min=TINY), 0.0)


@dataclass(frozen=True, kw_only=True)
class PassK(Baseline):
    """Only the best row of a group gets (best - second best)/(std + eps); 0 for groups of one (verl grpo_passk)."""

    name: ClassVar[str] = "passk"
    summary: ClassVar[str] = "only the best row of a group counts, by its lead over the second"
    reference: ClassVar[str] = "Pass@k training 2508.10751; verl grpo_passk"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = (best - second) / (std_G + eps) on the best row, else 0"
    differences: ClassVar[tuple[str, ...]] = ("verl raises for groups of one",)
    eps: float = number(1e-6, minimum=0)

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`; among equal best rows the first one is meant, with a lead of 0."""
        if ev.reward.shape[-1] < 2:
            return torch.zeros_like(ev.reward)
        inside = torch.where(ev.rows, ev.reward, -torch.inf)
        top = inside.topk(2, dim=-1)
        lead = torch.where(group_count(ev) > 1, top.values[..., :1] - top.values[..., 1:], 0.0)
        advantage = over_std(lead, group_std(ev, ddof=1), self.eps)
        return torch.zeros_like(ev.reward).scatter(-1, top.indices[..., :1], advantage)


@dataclass(frozen=True, kw_only=True)
class AsymRe(Baseline):
    """Group mean shifted by a negative delta, so that bad rows weigh less off policy (AsymRE 2506.20520)."""

    name: ClassVar[str] = "asymre"
    summary: ClassVar[str] = "reward minus a baseline set below the group mean"
    reference: ClassVar[str] = "AsymRE 2506.20520"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - (mean_G R + delta), delta < 0"
    delta: float = number(-0.1, maximum=0)

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return ev.reward - (group_mean(ev, ev.reward) + self.delta)
