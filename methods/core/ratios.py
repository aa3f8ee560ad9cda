"""Arithmetic on ratios and advantages that several methods and masks share."""

from __future__ import annotations

import math

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.view import EvidenceView


def log_of(bound: float) -> float:
    """Logarithm of a bound on a ratio, -inf for 0."""
    return math.log(bound) if bound > 0 else -math.inf


def outside(log_weight: Tensor, low: float, high: float) -> Tensor:
    """Bool, where the logarithm of a weight lies strictly beyond one of its bounds."""
    return (log_weight < log_of(low)) | (log_weight > log_of(high))


def segment_mean(value: Tensor, mask: Tensor) -> Tensor:
    """`[..., T]` mean of `value` over the run of True tokens each token belongs to; 0 at masked tokens."""
    before = torch.nn.functional.pad(mask[..., :-1], (1, 0))
    run = (mask & ~before).cumsum(-1) * mask
    size = mask.shape[-1] + 1
    sums = value.new_zeros((*value.shape[:-1], size)).scatter_add_(-1, run, value)
    counts = torch.zeros_like(sums).scatter_add_(-1, run, torch.ones_like(value))
    return torch.where(mask, (sums / counts.clamp(min=1)).gather(-1, run), 0.0)


def row_mean(ev: EvidenceView, value: Tensor) -> Tensor:
    """`[..., P, G, 1]` mean of a value per token over the tokens in play of the row."""
    total = (value * ev.rows.mask_float).sum(-1, keepdim=True)
    return total / ev.rows.divisor.unsqueeze(-1)


def judged_by(ev: EvidenceView, sign: str) -> Tensor:
    """`[..., P, G, 1|T]` the advantage whose sign counts: each token's own, or that of column 0, 0 where masked."""
    return ev.advantage if sign == "own" else (ev.advantage * ev.rows.mask_float)[..., :1]
