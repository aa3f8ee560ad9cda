"""The off-policy optimal baseline of VCPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.group_statistics import group_std, over_std
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.ratios import log_of
from vcpo_bench.methods.core.reach import Reach, Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, flag, number


@dataclass(frozen=True, kw_only=True)
class Opob(Baseline):
    """Reward mean of each group weighted by squared weight times squared score norm (VCPO 2602.17616, equation 7).

    b = sum W R / sum W over the group, W = w^2 ||grad log pi(y|x)||^2, in log space with the largest W taken out.
    `weight=truncated` uses min(w, cap), the weight the estimator applies; `weight=released` is the published
    code, in which the weight enters twice: W = min(w, cap)^2 w^2 ||.||^2. `length=on` divides the norm by L_i,
    the gradient that a mean over tokens really applies. `others=on` leaves the row's own term out, `scope=batch`
    fits one b to all rows, `robust` takes the weighted median, or the mean of rewards clipped to their weighted 5 %
    and 95 % quantiles, instead of the mean. `std=off` does not divide by the standard deviation. `eps` is added to
    sum W, as the published code does with 1e-8: where all weights are that small, b is pulled to 0.
    """

    name: ClassVar[str] = "opob"
    summary: ClassVar[str] = "variance-optimal baseline from weights and score norms"
    reference: ClassVar[str] = "VCPO 2602.17616"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "A = (R - b)/std_G, b = sum_G W R / sum_G W, W = w^2 ||grad log pi||^2"
    differences: ClassVar[tuple[str, ...]] = (
        "released code: the norm is measured on a gradient that already carries the truncated weight (weight=released)",
    )
    weight: str = choice("raw", "truncated", "released", "one")
    cap: float = number(8.0, minimum=0)
    length: bool = flag(False)
    others: bool = flag(False)
    scope: str = choice("group", "batch")
    robust: str = choice("mean", "median", "winsorized")
    std: bool = flag(True)
    eps: float = number(0.0, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The squared score norms."""
        return frozenset({"score_norm_sq"})

    @property
    def anchors(self) -> dict[str, str]:
        """The weight is current over behavior."""
        return {"opob weight": "behavior"}

    @property
    def reach(self) -> Reach:
        """The group, or the batch, that shares a baseline."""
        return Reach(Scope.BATCH if self.scope == "batch" else Scope.GROUP)

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        centered = torch.where(ev.rows.valid, ev.reward - self.baseline(ev), 0.0)
        return over_std(centered, group_std(ev), 0.0) if self.std else centered

    def baseline(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` or broadcastable: b; where every importance is zero the mean reward, with `eps` 0."""
        logs, reward, valid = self._log_importance(ev), ev.reward, ev.rows.valid
        if self.scope == "batch":
            logs, reward, valid = (each.flatten(-2).unsqueeze(-2) for each in (logs, reward, valid))
        plain = torch.where(valid, reward, 0.0).sum(-1) / valid.sum(-1).clamp(min=1)
        if self.robust == "median":
            return _weighted_quantile(logs, reward, 0.5).unsqueeze(-1)
        if self.robust == "winsorized":
            low, high = (_weighted_quantile(logs, reward, level).unsqueeze(-1) for level in (0.05, 0.95))
            reward = reward.clamp(low, high)
        if not self.others:
            return _weighted_mean(logs, reward, plain, self.eps).unsqueeze(-1)
        own = torch.eye(logs.shape[-1], dtype=torch.bool, device=logs.device)
        pairs = logs.unsqueeze(-2).masked_fill(own, -torch.inf)
        return _weighted_mean(pairs, reward.unsqueeze(-2), plain.unsqueeze(-1).expand_as(reward), self.eps)

    def _log_importance(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]` log W; -inf for rows that do not count."""
        log_weight = ev.pair().row_log
        truncated = log_weight.clamp(max=log_of(self.cap))
        power = {
            "raw": 2 * log_weight,
            "truncated": 2 * truncated,
            "released": 2 * (truncated + log_weight),
            "one": torch.zeros_like(log_weight),
        }
        norms = ev.row_field("score_norm_sq").clamp(max=torch.finfo(log_weight.dtype).max).to(log_weight.dtype)
        if self.length:
            norms = norms / ev.rows.divisor**2
        return torch.where(ev.rows.valid, power[self.weight] + norms.log(), -torch.inf)


def _weighted_mean(log_importance: Tensor, value: Tensor, fallback: Tensor, eps: float) -> Tensor:
    """Mean of `value` over the last axis with weights W = exp(log_importance), eps added to sum W.

    Without any weight it is `fallback`, or 0 where eps is added.
    """
    top = log_importance.amax(-1, keepdim=True)
    shift = torch.where(torch.isfinite(top), top, 0.0)
    weight = torch.exp(log_importance - shift)
    total = weight.sum(-1)
    if eps > 0:
        total, fallback = total + eps * torch.exp(-shift.squeeze(-1)), torch.zeros_like(fallback)
    return torch.where(total > 0, (weight * value).sum(-1) / total.clamp(min=0.5), fallback)


def _weighted_quantile(log_importance: Tensor, value: Tensor, level: float) -> Tensor:
    """Smallest value whose cumulative share of the weights exp(log_importance) reaches `level`, last axis."""
    order = torch.where(torch.isfinite(log_importance), value, torch.inf).argsort(-1)
    top = log_importance.amax(-1, keepdim=True)
    weight = torch.exp(log_importance - torch.where(torch.isfinite(top), top, 0.0)).gather(-1, order)
    share = weight.cumsum(-1) / weight.sum(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny)
    place = (share < level).sum(-1, keepdim=True).clamp(max=value.shape[-1] - 1)
    return value.gather(-1, order).gather(-1, place).squeeze(-1)
