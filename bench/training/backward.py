"""From coefficients to gradients: the backward passes of the learner."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.policies.scores import TokenScores


def send_backward(scores: TokenScores, coefficients: Tensor, entropy_coefficients: Tensor | None) -> None:
    """Backward pass of the loss `-sum c logp - sum e H`, which is what coefficients mean.

    Args:
        scores: TokenScores `[rows, T]` with their graph.
        coefficients: `[rows, T]` c of each token.
        entropy_coefficients: `[rows, T]` e of each token; None: no entropy bonus.
    """
    device = scores.logp.device
    outputs, gradients = [scores.logp], [-coefficients.to(device)]
    if entropy_coefficients is not None:
        outputs.append(scores.differentiable_entropy())
        gradients.append(-entropy_coefficients.to(device))
    torch.autograd.backward(outputs, gradients)


def constant_rows(coefficients: Tensor, mask: Tensor) -> Tensor | None:
    """`[rows]` the one coefficient of each trajectory's tokens, or None where they differ."""
    first = coefficients.gather(1, mask.long().argmax(1, keepdim=True))
    constant = torch.equal(torch.where(mask, first, 0.0), torch.where(mask, coefficients, 0.0))
    return first.squeeze(1) if constant else None
