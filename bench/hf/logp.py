"""Log-probabilities of chosen tokens without ever holding the logits of more than a few of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK_BYTES = 2**27
"""Size of the float32 logits that exist at once; two or three buffers of this size are in use."""


class TokenStatistics(NamedTuple):
    """What the distributions at N places say, each [N] float32; the last is without gradient."""

    logp: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor


def token_statistics(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    dtype: torch.dtype = torch.float32,
    chunk_bytes: int = CHUNK_BYTES,
) -> TokenStatistics:
    """Log-probability of a target, entropy and sum of squared probabilities under softmax(hidden @ weight.T + bias).

    The vocabulary is gone through for a few places at a time, in the forward pass and again in the backward pass, so
    that memory does not grow with N times the vocabulary: 16,384 places of 151,936 tokens would be 10 GB of logits.

    Args:
        hidden: [N, H], what the head reads.
        weight: [V, H] of the head.
        bias: [V] or None.
        targets: int64 [N].
        dtype: what the product is computed in; the softmax is float32.
        chunk_bytes: size of the logits that exist at once.

    Returns:
        The statistics; gradients reach hidden, weight and bias.
    """
    rows = max(1, chunk_bytes // (4 * weight.shape[0]))
    with torch.autocast(hidden.device.type, enabled=False):  # which would round what is summed over the vocabulary
        found: tuple[Tensor, Tensor, Tensor] = _TokenStatistics.apply(hidden, weight, bias, targets, dtype, rows)  # type: ignore[no-untyped-call]
    return TokenStatistics(*found)


class _TokenStatistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, dtype: torch.dtype, rows: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        results = hidden.new_empty((3, len(hidden)), dtype=torch.float32)
        cast = weight.to(dtype)
        for part in _parts(len(hidden), rows):
            logits = _logits(hidden[part], cast, bias)
            normaliser = logits.logsumexp(1)
            results[0, part] = logits.gather(1, targets[part].unsqueeze(1)).squeeze(1) - normaliser
            p = logits.sub(normaliser.unsqueeze(1)).exp_()
            results[1, part] = normaliser - torch.linalg.vecdot(p, logits)
            results[2, part] = torch.linalg.vecdot(p, p)
        logp, entropy, squares = (row.clone() for row in results)  # outputs must not share memory
        ctx.save_for_backward(hidden, weight, bias, targets, entropy)
        ctx.dtype, ctx.rows = dtype, rows
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(squares)
        return logp, entropy, squares

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, entropy = ctx.saved_tensors
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        cast = weight.to(ctx.dtype)
        to_hidden = torch.empty_like(hidden) if needs_hidden else None
        to_weight = torch.zeros_like(weight) if needs_weight else None
        to_bias = torch.zeros_like(bias) if bias is not None and needs_bias else None
        for part in _parts(len(hidden), ctx.rows):
            logits = _logits(hidden[part], cast, bias)
            by_logit = _gradient_by_logit(logits, targets[part], entropy[part], gradients[0], gradients[1], part)
            low = by_logit.to(ctx.dtype)
            if to_hidden is not None:
                to_hidden[part] = low @ cast
            if to_weight is not None:
                to_weight += low.t() @ hidden[part].to(ctx.dtype)
            if to_bias is not None:
                to_bias += by_logit.sum(0)
        return to_hidden, to_weight, to_bias, None, None, None


def _parts(count: int, rows: int) -> list[slice]:
    return [slice(begin, min(begin + rows, count)) for begin in range(0, count, rows)]


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Float32 [n, V], also inside an autocast region."""
    with torch.autocast(hidden.device.type, enabled=False):
        logits = (hidden.to(weight.dtype) @ weight.t()).float()
        return logits if bias is None else logits.add_(bias)


def _gradient_by_logit(
    logits: Tensor, targets: Tensor, entropy: Tensor, by_logp: Tensor | None, by_entropy: Tensor | None, part: slice
) -> Tensor:
    """[n, V] gradient by the logits: g (onehot - p) of the log-probability, -e p (log p + H) of the entropy."""
    log_p = logits.log_softmax(1)
    p = log_p.exp()
    total = torch.zeros_like(p)
    if by_entropy is not None:
        total.addcmul_(p, log_p.add_(entropy.unsqueeze(1))).mul_(-by_entropy[part].unsqueeze(1))
    if by_logp is not None:
        g = by_logp[part].unsqueeze(1)
        total.addcmul_(p, g, value=-1).scatter_add_(1, targets.unsqueeze(1), g)
    return total
