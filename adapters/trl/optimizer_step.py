"""What a method does to the optimizer step itself: its size, its gradient, or leaving it out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from vcpo_bench.adapters.coefficients import Decision
from vcpo_bench.methods import Method


class OptimizerStep:
    """One trainer's optimizer steps.

    Attributes:
        previous: The gradient of the last step before anything changed it, for methods that need it.
    """

    def __init__(self, method: Method, parameters: Sequence[nn.Parameter]) -> None:
        self._method, self._parameters = method, list(parameters)
        self._rates: list[float] = []
        self._acted = self._left_out = False
        self.previous: list[Tensor] | None = None

    def act_on_gradient(self, decision: Decision | None, scaler: Any) -> None:
        """Put what the method makes of this and the previous gradient into `.grad`; once per step, before clipping.

        A step that is left out says nothing about the next one: the previous gradient stays.

        Args:
            decision: What the method decided; None: not yet anything.
            scaler: The loss scaler of float16 training, by which gradients are multiplied here; else None.
        """
        if self._method.combine is None or self._acted or (decision is not None and decision.skipped):
            return
        self._acted = True
        loss_scale = 1.0 if scaler is None else float(scaler.get_scale())
        gradient = [torch.zeros_like(p) if p.grad is None else p.grad / loss_scale for p in self._parameters]
        if not all(bool(torch.isfinite(part).all()) for part in gradient):
            self._left_out = True
            return
        previous, self.previous = self.previous, gradient
        if previous is None:
            return
        products = (_dot(gradient, gradient), _dot(gradient, previous), _dot(previous, previous))
        a, b = self._method.combine(products)
        if (a, b) == (0.0, 0.0):
            self._left_out = True
            return
        for parameter, own, before in zip(self._parameters, gradient, previous, strict=True):
            parameter.grad = (a * own + b * before) * loss_scale

    def before(self, optimizer: Any, decision: Decision, scaler: Any) -> None:
        """Just before the optimizer steps: multiply the learning rates, or leave the step out.

        Args:
            optimizer: The optimizer.
            decision: What the method decided.
            scaler: The loss scaler of float16 training; else None.
        """
        self.act_on_gradient(decision, scaler)
        if decision.skipped or self._left_out:
            self._leave_out(optimizer, scaler)
        self._acted = self._left_out = False
        self._rates = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] *= 0.0 if decision.skipped else decision.step_scale

    def after(self, optimizer: Any) -> None:
        """Just after: the learning rates are the scheduler's again."""
        for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate

    def _leave_out(self, optimizer: Any, scaler: Any) -> None:
        """Without a gradient the optimizer touches neither a weight nor a moment."""
        if scaler is not None:  # it must have seen gradients before they go
            with suppress(RuntimeError):  # it has, when they were clipped
                scaler.unscale_(getattr(optimizer, "optimizer", optimizer))
        for parameter in self._parameters:
            parameter.grad = None


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    return float(sum((a.float() * b.float()).sum() for a, b in zip(one, other, strict=True)))
