"""The off-policy optimal baseline of VCPO."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.params import choice, flag, number
from vcpo_bench.methods.parts.base import Baseline
from vcpo_bench.methods.parts.baselines import group_mean, group_std, over_std


@dataclass(frozen=True, kw_only=True)
class Opob(Baseline):
    """Reward mean of each group weighted by squared weight times squared score norm (VCPO 2602.17616, equation 7).

    b = sum W R / sum W over the group, W = w^2 ||grad log pi(y|x)||^2, in log space with the largest W taken out.
    ``weight=truncated`` uses min(w, cap), the weight the estimator applies; ``weight=released`` is the published
    code, in which the weight enters twice: W = min(w, cap)^2 w^2 ||.||^2. ``length=on`` divides the norm by L_i,
    the gradient that a mean over tokens really applies. ``others=on`` leaves the row's own term out.
    """

    name: ClassVar[str] = "opob"
    summary: ClassVar[str] = "variance-optimal baseline from weights and score norms"
    reference: ClassVar[str] = "VCPO 2602.17616"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A = (R - b)/std_G, b = sum_G W R / sum_G W, W = w^2 ||grad log pi||^2"
    differences: ClassVar[tuple[str, ...]] = (
        "released code: the norm is measured on a gradient that already carries the truncated weight (weight=released)",
    )
    weight: str = choice("raw", "truncated", "released")
    cap: float = number(8.0, minimum=0)
    length: bool = flag(False)
    others: bool = flag(False)

    @property
    def needs(self) -> frozenset[str]:
        """The squared score norms."""
        return frozenset({"score_norm_sq"})

    @property
    def anchors(self) -> dict[str, str]:
        """The weight is current over behavior."""
        return {"opob weight": "behavior"}

    def advantage(self, ev: Evidence) -> Tensor:
        """``[..., P, G]``."""
        baseline = self.baseline(ev, self._log_importance(ev))
        return over_std(torch.where(ev.rows, ev.reward - baseline, 0.0), group_std(ev), 0.0)

    def _log_importance(self, ev: Evidence) -> Tensor:
        """``[..., P, G]`` log W; -inf for rows that do not count."""
        log_weight = ev.row_log_ratio()
        truncated = log_weight.clamp(max=torch.tensor(self.cap).log().item())
        power = {"raw": 2 * log_weight, "truncated": 2 * truncated, "released": 2 * (truncated + log_weight)}
        norms = ev.row_field("score_norm_sq").to(log_weight.dtype)
        if self.length:
            norms = norms / ev.lengths.clamp(min=1) ** 2
        return torch.where(ev.rows, power[self.weight] + norms.log(), -torch.inf)

    def baseline(self, ev: Evidence, log_importance: Tensor) -> Tensor:
        """``[..., P, G]`` or ``[..., P, 1]``; the group mean where every importance is zero."""
        reward, fallback = ev.reward, group_mean(ev, ev.reward)
        if not self.others:
            return _weighted_mean(log_importance, reward, fallback.squeeze(-1)).unsqueeze(-1)
        G = log_importance.shape[-1]
        own = torch.eye(G, dtype=torch.bool, device=log_importance.device)
        pairs = log_importance.unsqueeze(-2).masked_fill(own, -torch.inf)
        return _weighted_mean(pairs, reward.unsqueeze(-2), fallback.expand_as(reward))


def _weighted_mean(log_importance: Tensor, value: Tensor, fallback: Tensor) -> Tensor:
    """Mean of ``value`` over the last axis with weights exp(log_importance); ``fallback`` without any weight."""
    top = log_importance.amax(-1, keepdim=True)
    weight = torch.exp(log_importance - torch.where(torch.isfinite(top), top, 0.0))
    total = weight.sum(-1)
    return torch.where(total > 0, (weight * value).sum(-1) / total.clamp(min=0.5), fallback)
