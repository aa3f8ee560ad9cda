"""PPO's clip: its bounds, and a differentiated ratio that falls silent outside them."""

import torch
from torch import Tensor

from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import Evidence


def bounds(advantage: Tensor, low: float, high: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Where PPO's clip removes the gradient: below the first for A < 0, above the second for A > 0."""
    below = torch.where(advantage < 0, low, -torch.inf).to(dtype)
    return below, torch.where(advantage > 0, high, torch.inf).to(dtype)


def differentiated(ev: Evidence, ratio: Tensor, keep: Tensor, beyond: Tensor | None) -> Terms:
    """A ratio with a gradient of its own: silent where it was not kept, and where the clamp holds it constant.

    Args:
        ev: The evidence.
        ratio: `[..., P, G, 1|T]`.
        keep: `[..., P, G, T]` zeros and ones from `Evidence.within`; changed in place.
        beyond: `[..., P, G, 1|T]` bool, or None.
    """
    if beyond is not None:
        keep.mul_(as_number(~beyond, keep.dtype))
    return Terms(weight=ev.gated(ratio, keep), kept=keep)
