"""Means and standard deviations of the rewards of a group, or of the whole batch: what baselines are made of."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES
from vcpo_bench.methods.core.view import EvidenceView

TINY = 1e-8
"""A standard deviation at or below this is zero: the advantage is then 0, not rounding error over rounding error."""


def group_count(ev: EvidenceView) -> Tensor:
    """`[..., P, 1]` rows in play of each group, at least 1."""
    return ev.rows.group_sizes


def group_mean(ev: EvidenceView, value: Tensor) -> Tensor:
    """`[..., P, 1]` mean of `value[..., P, G]` over the rows in play of each group."""
    return ev.rows.only(value).sum(-1, keepdim=True) / group_count(ev)


def group_std(ev: EvidenceView, ddof: int = 0) -> Tensor:
    """`[..., P, 1]` standard deviation of the rewards of each group; 0 where it is undefined."""
    return group_spread(ev, ev.reward - group_mean(ev, ev.reward), ddof)


def group_spread(ev: EvidenceView, centered: Tensor, ddof: int = 0) -> Tensor:
    """The same from `centered[..., P, G]`, the rewards minus the mean of their group."""
    count = group_count(ev)
    centered = ev.rows.only(centered)
    squares = (centered * centered).sum(-1, keepdim=True)
    if ddof == 0:
        return (squares / count).sqrt()
    return torch.where(count > ddof, squares / (count - ddof).clamp(min=1), 0.0).sqrt()


def group_median(ev: EvidenceView, value: Tensor, *, lower: bool = False) -> Tensor:
    """`[..., P, 1]` median of `value[..., P, G]` over the rows in play of each group; 0 for groups without any.

    Args:
        ev: The evidence.
        value: One number per row.
        lower: Of an even number, take the lower of the two in the middle instead of their mean.
    """
    ordered = torch.where(ev.rows.valid, value, torch.inf).sort(-1).values
    count = group_count(ev)
    first = ordered.gather(-1, (count - 1) // 2)
    second = first if lower else ordered.gather(-1, count // 2)
    return torch.where(ev.rows.valid.any(-1, keepdim=True), (first + second) / 2, 0.0)


def over_std(centered: Tensor, std: Tensor, eps: float) -> Tensor:
    """`centered / (std + eps)`, and 0 where the standard deviation is."""
    return torch.where(std > TINY, centered / (std + eps).clamp(min=TINY), 0.0)


def singletons(ev: EvidenceView, advantage: Tensor, rule: str) -> Tensor:
    """Groups of one row keep their raw reward when `rule` is `raw`; else the advantage as it is."""
    return torch.where(group_count(ev) == 1, ev.reward, advantage) if rule == "raw" else advantage


def batch_std(ev: EvidenceView) -> Tensor:
    """`[..., 1, 1]` sample standard deviation of the rewards of all rows in play."""
    count = ev.rows.valid.sum(ROW_AXES, keepdim=True)
    mean = ev.reward.sum(ROW_AXES, keepdim=True) / count.clamp(min=1)
    centered = torch.where(ev.rows.valid, ev.reward - mean, 0.0)
    return ((centered * centered).sum(ROW_AXES, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
