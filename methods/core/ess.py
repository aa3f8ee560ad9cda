"""Effective sample size of importance weights, in log space."""

from __future__ import annotations

import math

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import ROW_AXES


def ess_ratio_of_logs(log_weight: Tensor, rows: Tensor | None) -> Tensor:
    """(sum w)^2 / (B sum w^2) with the largest log-weight subtracted first.

    It lies in [1/B, 1], does not change when all weights are multiplied by a constant, and is never NaN: without
    rows, or with weights that are all zero or not numbers, it is 0, so that it can only shrink a step.

    Args:
        log_weight: `[..., P, G]` logarithms of sequence weights; -inf is a weight of zero.
        rows: `[..., P, G]` bool, the rows that count; None: all.

    Returns:
        Leading shape, in [0, 1]. VCPO 2602.17616, section 3.2.
    """
    masked = log_weight if rows is None else torch.where(rows, log_weight, -torch.inf)
    top = masked.amax(ROW_AXES, keepdim=True).nan_to_num_(0.0, 0.0, 0.0)
    return _kish(torch.exp(masked - top), rows)  # the largest is 1


def ess_ratio(weight: Tensor, rows: Tensor | None) -> Tensor:
    """The same from non-negative weights `[..., P, G]`, divided by their maximum first."""
    weight = weight if rows is None else torch.where(rows, weight, 0.0)
    return _kish(weight / weight.amax(ROW_AXES, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny), rows)


def _kish(weight: Tensor, rows: Tensor | None) -> Tensor:
    """The same from weights of at most 1 that are 0 at rows that do not count."""
    total = weight.sum(ROW_AXES)
    squares = (weight * weight).sum(ROW_AXES)
    count = math.prod(weight.shape[-2:]) if rows is None else rows.sum(ROW_AXES)
    ratio = total * total / (squares * count).clamp(min=1e-30)
    return ratio.nan_to_num_(0.0, 0.0, 0.0)
