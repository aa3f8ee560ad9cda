"""PPO's clip: its bounds, and a differentiated ratio whose gradient is 0 where a clamp holds it constant."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.masking import as_number, choose
from vcpo_bench.methods.core.terms import Terms


def clip_bounds(advantage: Tensor, low: float, high: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Where PPO's clip removes the gradient: below the first for A < 0, above the second for A > 0."""
    below = choose(advantage < 0, low, -torch.inf, dtype)
    return below, choose(advantage > 0, high, torch.inf, dtype)


def differentiated(ratio: Tensor, kept: Tensor, beyond: Tensor | None) -> Terms:
    """A ratio with a gradient of its own, which is 0 where a clamp holds the ratio constant.

    Args:
        ratio: `[..., P, G, 1|T]`.
        kept: `[..., P, G, 1|T]` zeros and ones: where the surrogate lets the gradient through.
        beyond: `[..., P, G, 1|T]` bool: where the clamp holds the ratio; None: nowhere.
    """
    return Terms(weight=ratio, kept=kept if beyond is None else kept * as_number(~beyond, kept.dtype))
