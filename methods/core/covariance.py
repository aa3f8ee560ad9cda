"""What Clip-Cov and KL-Cov share: the covariance of advantage and log-probability, token by token."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.view import EvidenceView


def covariance(ev: EvidenceView) -> Tensor:
    """`[..., P, G, T]` (A - mean A)(log pi - mean log pi) over the tokens in play (2505.22617, equation 9)."""
    count = ev.rows.tokens[..., None, None, None].clamp(min=1)

    def centered(value: Tensor) -> Tensor:
        mean = (value * ev.rows.mask_float).sum(BATCH_AXES, keepdim=True) / count
        return value - mean

    return centered(ev.advantage) * centered(ev.token_field("logp"))


def largest(score: Tensor, candidates: Tensor, count: Tensor) -> Tensor:
    """Bool, the `count` (leading shape) candidates with the largest score of each batch; ties go by position."""
    flat = torch.where(candidates, score, -torch.inf).flatten(-3)
    most = int(count.max()) if count.numel() else 0
    chosen = torch.zeros_like(flat, dtype=torch.bool)
    if most:
        places = flat.topk(most, dim=-1).indices
        wanted = torch.arange(most, device=flat.device) < count.unsqueeze(-1)
        chosen.scatter_(-1, places, wanted)
    return chosen.reshape(score.shape) & candidates
