"""Approximations of the proximal policy that need no extra forward pass."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.view import EvidenceView


def approximate_proximal(ev: EvidenceView, kind: str) -> Tensor:
    """`[..., P, G, T]` log-probability under an interpolated proximal policy (A-3PO 2512.06547).

    Args:
        ev: The batch; its versions say how far each token is behind.
        kind: `loglinear`, `linear` (in probability) or `behavior`.
    """
    behavior, current = ev.batch.behavior_logp, ev.batch.logp
    if kind == "behavior":
        return behavior
    now = torch.as_tensor(ev.batch.now, device=behavior.device)
    now = now.reshape(*now.shape, 1, 1, 1)
    gap = (now - ev.need("version")).to(current.dtype)
    share = torch.where(gap > 0, (gap - 1) / gap.clamp(min=1), 0.0).clamp(0.0, 1.0)
    if kind == "loglinear":
        return behavior + share * (current - behavior)
    return ((1 - share) * behavior.exp() + share * current.exp() + 1e-10).log()
