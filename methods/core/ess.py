"""Effective sample size of importance weights, in log space."""

import torch
from torch import Tensor

from vcpo_bench.methods.core.batch import ROW_AXES


def ess_ratio_of_logs(log_weight: Tensor, rows: Tensor) -> Tensor:
    """(sum w)^2 / (B sum w^2) with the largest log-weight subtracted first.

    It lies in [1/B, 1], does not change when all weights are multiplied by a constant, and is never NaN: without
    rows, or with weights that are all zero or not numbers, it is 0, so that it can only shrink a step.

    Args:
        log_weight: `[..., P, G]` logarithms of sequence weights; -inf is a weight of zero.
        rows: `[..., P, G]` bool, the rows that count.

    Returns:
        Leading shape, in [0, 1]. VCPO 2602.17616, section 3.2.
    """
    masked = torch.where(rows, log_weight, -torch.inf)
    top = masked.amax(ROW_AXES, keepdim=True)
    weight = torch.exp(masked - torch.where(torch.isfinite(top), top, 0.0))
    return ess_ratio(weight, rows)


def ess_ratio(weight: Tensor, rows: Tensor) -> Tensor:
    """The same from non-negative weights `[..., P, G]`, divided by their maximum first."""
    weight = torch.where(rows, weight, 0.0)
    weight = weight / weight.amax(ROW_AXES, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny)
    total = weight.sum(ROW_AXES)
    squares = (weight * weight).sum(ROW_AXES)
    count = rows.sum(ROW_AXES)
    ratio = total * total / (squares * count).clamp(min=1e-30)
    return torch.where(torch.isfinite(ratio), ratio, 0.0)
