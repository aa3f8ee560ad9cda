"""The optimizers of E cells: each cell's own on a CPU, one for all of them on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.stack.weights import StackedWeights

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class OwnOptimizers:
    """The optimizer of each cell on its views of the stacked weights: bit for bit what a cell alone does.

    PyTorch's fused kernel rounds in a way of its own, so on a CPU nothing else gives a cell the bits it has alone.
    """

    def __init__(self, weights: StackedWeights, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self.weights, self.optimizers = weights, optimizers

    def step(self, rates: Sequence[float], moves: Sequence[bool]) -> None:
        """One step of the cells that move, by their learning rates, with the gradients of the stacked weights."""
        for cell, (optimizer, rate, move) in enumerate(zip(self.optimizers, rates, moves, strict=True)):
            if move:
                self.weights.share_gradient(cell)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.step()


class StackedAdamW:
    """AdamW of E cells in the same products; equal to `OwnOptimizers` up to the rounding of the last operation.

    The state of each cell's own optimizer becomes views of it, so that a checkpoint holds what it always does.

    Args:
        weights: The weights.
        optimizers: The optimizer of each cell, at its start or loaded from a checkpoint.
    """

    def __init__(self, weights: StackedWeights, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self.weights, self.optimizers = weights, optimizers
        self._parameters = [optimizer.param_groups[0]["params"] for optimizer in optimizers]
        self._decay = [float(optimizer.param_groups[0]["weight_decay"]) for optimizer in optimizers]
        stacked = list(weights.tensors.values())
        self._mean, self._square = (self._adopt(name, stacked) for name in ("exp_avg", "exp_avg_sq"))
        done = [_steps(optimizer) for optimizer in optimizers]
        self._steps = torch.tensor(done, device=weights.device).unsqueeze(1).repeat(1, len(stacked))
        for cell, count in enumerate(done):
            if count:
                self._publish(cell)

    def _adopt(self, name: str, stacked: Sequence[Tensor]) -> list[Tensor]:
        """The moment of that name of all cells, `[E, *shape]` per parameter; zeros where a cell has none yet."""
        found = [torch.zeros_like(tensor, requires_grad=False) for tensor in stacked]
        for cell, (optimizer, parameters) in enumerate(zip(self.optimizers, self._parameters, strict=True)):
            for moment, parameter in zip(found, parameters, strict=True):
                if parameter in optimizer.state:
                    moment[cell] = optimizer.state[parameter][name]
        return found

    def _publish(self, cell: int) -> None:
        """Let the state of a cell's own optimizer be views of the stacked one."""
        for index, parameter in enumerate(self._parameters[cell]):
            self.optimizers[cell].state[parameter] = {
                "step": self._steps[cell, index],
                "exp_avg": self._mean[index][cell],
                "exp_avg_sq": self._square[index][cell],
            }

    @torch.no_grad()
    def step(self, rates: Sequence[float], moves: Sequence[bool]) -> None:
        """See `OwnOptimizers.step`."""
        device = self.weights.device
        moving = torch.tensor(moves, device=device)
        rate = torch.tensor(rates, dtype=torch.float64, device=device)
        self._steps += moving.unsqueeze(1)
        done = self._steps[:, 0].double().clamp(min=1)
        shrink = (1 - rate * torch.tensor(self._decay, dtype=torch.float64, device=device)).float()
        factor = (-rate / (1 - BETAS[0] ** done)).float()
        root = (1 - BETAS[1] ** done).sqrt().float()
        tensors = self.weights.tensors.values()
        for weight, mean, square in zip(tensors, self._mean, self._square, strict=True):
            assert weight.grad is not None
            _move(weight, weight.grad, mean, square, *(_like(x, weight) for x in (shrink, factor, root, moving)))
        for cell, (move, optimizer) in enumerate(zip(moves, self.optimizers, strict=True)):
            if move and not optimizer.state:
                self._publish(cell)


def _steps(optimizer: torch.optim.Optimizer) -> float:
    """Steps that an optimizer has made."""
    return float(next(iter(optimizer.state.values()))["step"]) if optimizer.state else 0.0


def _like(per_cell: Tensor, weight: Tensor) -> Tensor:
    return per_cell.view(len(per_cell), *[1] * (weight.dim() - 1))


def _move(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    shrink: Tensor,
    factor: Tensor,
    root: Tensor,
    moving: Tensor,
) -> None:
    """AdamW of one parameter `[E, ...]`, in place; cells that do not move keep weights and moments."""
    grad = torch.where(moving, grad, 0.0)  # one that is not a number must reach nothing
    mean.copy_(torch.where(moving, torch.lerp(mean, grad, 1 - BETAS[0]), mean))
    square.copy_(torch.where(moving, torch.addcmul(square * BETAS[1], grad, grad, value=1 - BETAS[1]), square))
    moved = weight * shrink + factor * mean / (square.sqrt() / root + EPSILON)
    weight.copy_(torch.where(moving, moved, weight))
