"""From the gradients of E cells to their steps: what diagnostics and gradient-space methods see, and clipping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from vcpo_bench.bench.stack.answers import Answer
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.methods import Update


def observe(
    weights: StackedWeights, learners: Sequence[Learner], answers: Sequence[Answer]
) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Let diagnostics and methods that replace the gradient see it, cell by cell, where there are any.

    Returns:
        What was measured of each cell, and whether it still has a gradient.
    """
    measured: list[Mapping[str, float]] = [{} for _ in learners]
    moves = [True] * len(learners)
    for cell, (learner, answer) in enumerate(zip(learners, answers, strict=True)):
        if isinstance(answer, Update) and (learner.settings.diagnostics or learner.method.combine):
            weights.share_gradient(cell)
            measured[cell] = learner.observe_gradient()
            moves[cell] = weights.take_gradient(cell)
    return measured, moves


@torch.no_grad()
def clip(weights: StackedWeights) -> list[float]:
    """Clip the gradient of every cell to `GRAD_CLIP`, as `clip_grad_norm_` does; the norms before."""
    gradients = weights.gradients()
    parts = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
    norms = torch.linalg.vector_norm(torch.stack(parts, 1), dim=1)
    factors = (GRAD_CLIP / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
    found: list[float] = norms.tolist()
    return found
