"""Baselines that look at the whole batch, or at lengths: batch std, REINFORCE++, GPG, OPO."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.methods.parts.baselines import TINY, group_mean, over_std, singletons
from vcpo_bench.naming.parameters import choice, flag, number

ROW_AXES = (-2, -1)


def _batch_std(ev: Evidence) -> Tensor:
    """`[..., 1, 1]` sample standard deviation of the rewards of all rows in play."""
    count = ev.rows.sum(ROW_AXES, keepdim=True)
    mean = ev.reward.sum(ROW_AXES, keepdim=True) / count.clamp(min=1)
    centered = torch.where(ev.rows, ev.reward - mean, 0.0)
    return ((centered * centered).sum(ROW_AXES, keepdim=True) / (count - 1).clamp(min=1)).sqrt()


@dataclass(frozen=True, kw_only=True)
class BatchStd(Baseline):
    """Group mean over the standard deviation of the whole batch (TRL `scale_rewards=batch`)."""

    name: ClassVar[str] = "batch-std"
    summary: ClassVar[str] = "group mean over the batch's standard deviation"
    reference: ClassVar[str] = "TRL scale_rewards=batch; 2508.08221"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = (R - mean_G R) / (std_batch R + eps)"
    eps: float = number(1e-4, minimum=0)

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return over_std(ev.reward - group_mean(ev, ev.reward), _batch_std(ev), self.eps)


@dataclass(frozen=True, kw_only=True)
class ReinforcePlusPlus(Baseline):
    """Rewards whitened over all tokens of the batch (REINFORCE++ 2501.03262); `group=on` centers groups first.

    Mean and sample variance weigh every row by its length. 0 when all values are equal.
    """

    name: ClassVar[str] = "rpp"
    summary: ClassVar[str] = "reward whitened over the tokens of the whole batch"
    reference: ClassVar[str] = "REINFORCE++ 2501.03262"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = (R - mean) / sqrt(var + 1e-8), over all tokens of the batch"
    differences: ClassVar[tuple[str, ...]] = ("whitening of equal rewards leaves dust of 2e-6 in verl, 0 here",)
    group: bool = flag(False)
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        value = ev.reward
        if self.group:
            value = singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)
        length = ev.lengths.to(value.dtype)
        count = length.sum(ROW_AXES, keepdim=True)
        mean = (value * length).sum(ROW_AXES, keepdim=True) / count.clamp(min=1)
        squares = (length * (value - mean) ** 2).sum(ROW_AXES, keepdim=True)
        variance = squares / (count - 1).clamp(min=1)
        whitened = (value - mean) / (variance + 1e-8).sqrt()
        return torch.where(variance > TINY**2, whitened, 0.0)


@dataclass(frozen=True, kw_only=True)
class Gpg(Baseline):
    """Group mean, rescaled by the share of rows in groups that carry a signal (GPG 2504.02546)."""

    name: ClassVar[str] = "gpg"
    summary: ClassVar[str] = "group mean, scaled up for rows whose advantage is zero"
    reference: ClassVar[str] = "GPG 2504.02546"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = (B / #nonzero) (R - mean_G R)"
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`; nonzero counts the rows with a reward other than 0, as in verl."""
        rows = ev.rows.sum(ROW_AXES, keepdim=True)
        nonzero = ((ev.reward != 0) & ev.rows).sum(ROW_AXES, keepdim=True)
        alpha = rows / nonzero.clamp(min=1)
        centered = singletons(ev, ev.reward - group_mean(ev, ev.reward), self.singleton)
        return alpha * centered


@dataclass(frozen=True, kw_only=True)
class Opo(Baseline):
    """Length-weighted group mean: the optimal baseline if squared score norms grow with length (OPO 2505.23585)."""

    name: ClassVar[str] = "opo"
    summary: ClassVar[str] = "reward minus the length-weighted mean of its group"
    reference: ClassVar[str] = "OPO 2505.23585"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "A = R - sum_G L R / sum_G L"
    singleton: str = choice("zero", "raw")

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`; the plain mean where a group has no token."""
        length = torch.where(ev.rows, ev.lengths, 0.0).to(ev.reward.dtype)
        total = length.sum(-1, keepdim=True)
        weighted = (length * ev.reward).sum(-1, keepdim=True) / total.clamp(min=1)
        mean = torch.where(total > 0, weighted, group_mean(ev, ev.reward))
        return singletons(ev, ev.reward - mean, self.singleton)


@dataclass(frozen=True, kw_only=True)
class Otb(Baseline):
    """Optimal token baseline: at every position the mean weighted by accumulated score norms (OTB 2602.07078).

    W_t = sum_{j<=t} (1 - 2 pi_j + sum_v pi_v^2) rho_j^2 stands for the squared score norm of the prefix; b_t is the
    mean of the rewards with these weights over the rows that reach t. Beyond the second longest row of a group, and
    for groups of one, the baseline is 0. `weights=on` multiplies by the squared token ratio, capped. Rows are
    compared column by column, or with `align=token` by how many tokens in play came before (several turns).
    """

    name: ClassVar[str] = "otb"
    summary: ClassVar[str] = "per-token baseline weighted by accumulated score norms"
    reference: ClassVar[str] = "OTB 2602.07078"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A_t = R - sum_G W_t R / sum_G W_t, W_t = cumsum_t (1 - 2 pi + sum pi^2) rho^2"
    weights: bool = flag(False)
    cap: float = number(2.0, minimum=0)
    policy: str = choice("current", "proximal")
    align: str = choice("column", "token")

    @property
    def needs(self) -> frozenset[str]:
        """Squared probabilities, and the proximal policy where it is the one asked about."""
        return frozenset({"sum_pi_sq", *(["proximal_logp"] if self.policy == "proximal" else [])})

    def advantage(self, ev: Evidence) -> Tensor:
        """`[..., P, G, T]`."""
        logp = ev.token_field("logp" if self.policy == "current" else "proximal_logp")
        norm = 1 - 2 * logp.exp() + ev.token_field("sum_pi_sq")
        if self.weights:
            norm = norm * ev.ratio(self.policy, "behavior", 20.0).clamp(max=self.cap) ** 2
        importance = torch.where(ev.mask, torch.where(ev.mask, norm, 0.0).cumsum(-1), 0.0)
        place = None
        if self.align == "token":
            place = (ev.mask.cumsum(-1) - 1).clamp(min=0)
            importance = torch.zeros_like(importance).scatter_add_(-1, place, importance)
        reward = ev.reward.to(importance.dtype).unsqueeze(-1)
        mean = (importance * reward).sum(-2, keepdim=True) / (importance.sum(-2, keepdim=True) + 1e-8)
        baseline = torch.where(self._alone(ev), 0.0, mean)
        if place is not None:
            baseline = baseline.gather(-1, place)
        return torch.where(ev.mask, reward - baseline, 0.0)

    def _alone(self, ev: Evidence) -> Tensor:
        """`[..., P, G, T]` bool: rows without others, and of the longest row what lies beyond the second longest."""
        if ev.rows.shape[-1] == 1:
            return torch.ones_like(ev.mask)
        longest, second = (each.unsqueeze(-1) for each in ev.lengths.topk(2, dim=-1).values.unbind(-1))
        ahead = (ev.lengths == longest) & (longest > second)
        beyond = torch.arange(ev.mask.shape[-1], device=ev.mask.device) >= second.unsqueeze(-1)
        counted = ev.rows if self.align == "column" else ev.rows & (ev.lengths > 0)
        single = counted.sum(-1, keepdim=True) <= 1
        return (ahead.unsqueeze(-1) & beyond) | single.unsqueeze(-1)
