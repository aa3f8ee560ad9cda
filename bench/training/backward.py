"""From coefficients to gradients: the backward passes of the learner."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.policies.scores import DenseScores, TokenScores
from vcpo_bench.methods import Update


def terms_of_loss(scores: TokenScores, update: Update, rows: slice | Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """What the loss `-sum c logp - sum e H - sum_v d_v logp_v` depends on, and its derivative in each.

    Args:
        scores: TokenScores `[rows, T]` with their graph.
        update: Of the whole batch `[P, G, T]`: c, and e and d where it has them.
        rows: Which of its `P * G` rows the scores are of.
    """

    def derivative(coefficients: Tensor) -> Tensor:
        return -coefficients.flatten(0, 1)[rows].float().to(scores.logp.device)

    outputs, gradients = [scores.logp], [derivative(update.coefficients)]
    if update.entropy_coefficients is not None:
        outputs.append(scores.differentiable_entropy())
        gradients.append(derivative(update.entropy_coefficients))
    if update.vocabulary_coefficients is not None:
        assert isinstance(scores, DenseScores), "refused for policies without the whole distribution"
        outputs.append(scores.distribution)
        gradients.append(derivative(update.vocabulary_coefficients).permute(2, 0, 1))
    return outputs, gradients


def send_backward(scores: TokenScores, update: Update, rows: slice | Tensor) -> None:
    """Backward pass of that loss; arguments as `terms_of_loss`."""
    backward_through(*terms_of_loss(scores, update, rows))


def backward_through(outputs: list[Tensor], gradients: list[Tensor]) -> None:
    """Backward pass from the gradients of some outputs."""
    if len(outputs) == 1:  # the same derivatives; given to PyTorch they would have it import sympy, for 0.8 s
        outputs, gradients = [(outputs[0] * gradients[0]).sum()], []
    torch.autograd.backward(outputs, gradients or None)


def constant_rows(update: Update, rows: slice | Tensor, mask: Tensor) -> Tensor | None:
    """`[rows]` the one coefficient of each trajectory's tokens; None where they differ, or are not all of the update.

    Args:
        update: Of the whole batch.
        rows: Which of its rows.
        mask: `[rows, T]`.
    """
    if update.entropy_coefficients is not None or update.vocabulary_coefficients is not None:
        return None
    coefficients = update.coefficients.flatten(0, 1)[rows].float().to(mask.device)
    first = coefficients.gather(1, mask.long().argmax(1, keepdim=True))
    constant = torch.equal(torch.where(mask, first, 0.0), torch.where(mask, coefficients, 0.0))
    return first.squeeze(1) if constant else None
