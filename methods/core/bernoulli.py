"""A token against all others as a coin: the divergence of two policies that needs only the token's probabilities."""

from __future__ import annotations

from vcpo_bench.lazy_torch import Tensor, torch


def bernoulli_kl(q: Tensor, p: Tensor, edge: float = 0.0) -> Tensor:
    """KL(Bernoulli(q) || Bernoulli(p)) with probabilities kept `edge` away from 0 and 1; 0: 1e-8 (float32: 1e-7)."""
    edge = edge or (1e-8 if q.dtype == torch.float64 else 1e-7)
    q, p = q.clamp(edge, 1 - edge), p.clamp(edge, 1 - edge)
    return q * (q / p).log() + (1 - q) * ((1 - q) / (1 - p)).log()


def two_tokens(logp: Tensor) -> Tensor:
    """`[..., 2]` log-probabilities of a vocabulary of a token with these, at most 0.999, and one other."""
    p = logp.exp().clamp(max=0.999)
    return torch.stack([p, 1 - p], -1).log()
