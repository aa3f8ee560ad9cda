"""The gradient of one update as one vector: what diagnostics and gradient-space methods read before it is clipped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

DOT_LENGTH = 2**30
"""Longest vectors multiplied in one call."""


class FlatGradient:
    """A `records.diagnostic.GradientView` of a module whose backward pass is done.

    Args:
        module: The policy; its `.grad` is copied here.
        head: Its output head.
        previous: `[D]` gradient of the last update that had a finite one; None at the first.

    Attributes:
        flat: `[D]` the gradient of all trained parameters.
        previous: As given.
    """

    def __init__(self, module: nn.Module, head: nn.Module, previous: Tensor | None) -> None:
        self.flat = _flat(module)
        self.previous = previous
        self._head = head

    @cached_property
    def head(self) -> Tensor | None:
        """`[D_head]` gradient of the output head alone; None where the head is frozen."""
        return _flat(self._head) if any(p.grad is not None for p in self._head.parameters()) else None

    @cached_property
    def head_norm(self) -> float:
        """l2 norm of the output head's gradient; NaN where the head is frozen."""
        return math.nan if self.head is None else float(self.head.norm())

    @property
    def finite(self) -> bool:
        """Whether every component is."""
        return bool(torch.isfinite(torch.stack(self.flat.aminmax())).all())  # reads the vector once; NaN is either

    @cached_property
    def dots(self) -> tuple[float, float, float]:
        """<g, g>, <g, p> and <p, p> of this gradient g and the previous one p; NaN where there is none."""
        if self.previous is None:
            return math.nan, math.nan, math.nan
        return dot(self.flat, self.flat), dot(self.flat, self.previous), dot(self.previous, self.previous)


def dot(left: Tensor, right: Tensor) -> float:
    """Inner product of two vectors `[D]`, in pieces, because cuBLAS counts elements with 32-bit integers."""
    pairs = zip(torch.split(left, DOT_LENGTH), torch.split(right, DOT_LENGTH), strict=True)
    return sum(float(a @ b) for a, b in pairs)


def put_gradient(parameters: Sequence[nn.Parameter], gradient: Tensor) -> None:
    """Replace the gradients of these parameters by the pieces of one vector `[D]`, in their order."""
    for parameter, piece in zip(parameters, torch.split(gradient, [p.numel() for p in parameters]), strict=True):
        parameter.grad = piece.view_as(parameter).clone()


def _flat(module: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])
