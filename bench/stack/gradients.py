"""The gradients of E cells as seen by diagnostics and gradient-space methods, measured together on a GPU.

Cell by cell, each number that Python reads waits for the GPU. Here they are computed for all cells and read once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.stack.answers import Answer
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.methods import Update

HEAD = "head."
"""How the names of the output head's parameters begin."""


@dataclass(frozen=True)
class MeasuredGradient:
    """A `records.diagnostic.GradientView` whose numbers are known; see there for the attributes."""

    flat: Tensor
    previous: Tensor | None
    head: Tensor | None
    head_norm: float
    dots: tuple[float, float, float]


class StackedGradients:
    """What `Learner.observe_gradient` is for one policy.

    Args:
        weights: The stacked weights; their gradients are replaced where a method does so.
        learners: Their learners, which keep the previous gradients.
    """

    def __init__(self, weights: StackedWeights, learners: Sequence[Learner]) -> None:
        self.weights, self.learners = weights, learners

    @torch.no_grad()
    def observe(self, answers: Sequence[Answer]) -> tuple[list[Mapping[str, float]], list[bool]]:
        """See `step.observe`."""
        measured: list[Mapping[str, float]] = [{} for _ in self.learners]
        moves = [True] * len(self.learners)
        every = enumerate(zip(self.learners, answers, strict=True))
        cells = [cell for cell, (one, answer) in every if isinstance(answer, Update) and _looks(one)]
        if not cells:
            return measured, moves
        flat, previous, seen = self._measure(cells)
        factors: dict[int, tuple[float, float]] = {}
        for row, gradient in enumerate(seen):
            if gradient is None:
                continue  # not finite: the step sees it too and is skipped; the last finite gradient is kept
            learner, cell = self.learners[cells[row]], cells[row]
            learner.previous_gradient = gradient.flat
            measured[cell] = {one.name: one.measure(gradient) for one in learner.settings.diagnostics}
            if learner.method.combine is not None and gradient.previous is not None:
                factors[row] = learner.method.combine(gradient.dots)
                moves[cell] = factors[row] != (0.0, 0.0)
        self._replace(cells, flat, previous, factors)
        return measured, moves

    def _measure(self, cells: Sequence[int]) -> tuple[Tensor, Tensor, list[MeasuredGradient | None]]:
        """Gradients and previous gradients `[n, D]` of n cells, and what is measured of each; None: not finite."""
        index = torch.tensor(cells, device=self.weights.device)
        parts = {
            name: tensor.grad.flatten(1) for name, tensor in self.weights.tensors.items() if tensor.grad is not None
        }
        flat = torch.cat([part.index_select(0, index) for part in parts.values()], 1)
        last = [self.learners[cell].previous_gradient for cell in cells]
        previous = torch.stack([torch.zeros_like(flat[0]) if one is None else one for one in last])
        heads = [part.index_select(0, index) for name, part in parts.items() if name.startswith(HEAD)]
        head = torch.cat(heads, 1) if heads else None
        norm = flat.new_full((len(cells),), math.nan) if head is None else torch.linalg.vector_norm(head, dim=1)
        pairs = ((flat, flat), (flat, previous), (previous, previous))
        dots = [torch.linalg.vecdot(*pair) for pair in pairs]
        numbers = torch.stack([torch.isfinite(flat).all(1).to(flat.dtype), norm, *dots], 1).tolist()
        seen: list[MeasuredGradient | None] = []
        for row, (finite, head_norm, *products) in enumerate(numbers):
            before = None if last[row] is None else previous[row]
            known = (products[0], products[1], products[2]) if before is not None else (math.nan, math.nan, math.nan)
            own = None if head is None else head[row]
            seen.append(MeasuredGradient(flat[row], before, own, head_norm, known) if finite else None)
        return flat, previous, seen

    def _replace(
        self, cells: Sequence[int], flat: Tensor, previous: Tensor, factors: Mapping[int, tuple[float, float]]
    ) -> None:
        """Put a g + b p in the place of the gradient g of some rows, p the previous one; 0 for (0, 0)."""
        if not factors:
            return
        device = self.weights.device
        rows, chosen = list(factors), torch.tensor([cells[row] for row in factors], device=device)
        a, b = torch.tensor(list(factors.values()), dtype=flat.dtype, device=device).unsqueeze(2).unbind(1)
        index = torch.tensor(rows, device=device)
        new = a * flat.index_select(0, index) + b * previous.index_select(0, index)
        gradients = self.weights.gradients()
        for gradient, piece in zip(gradients, torch.split(new, [g[0].numel() for g in gradients], 1), strict=True):
            gradient.index_copy_(0, chosen, piece.view(len(rows), *gradient.shape[1:]))


def _looks(learner: Learner) -> bool:
    """Whether something of this learner looks at the gradient."""
    return bool(learner.settings.diagnostics) or learner.method.combine is not None
