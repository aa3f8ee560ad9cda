"""Layers with weights of their own for each of E cells: a linear map, a layer norm, an embedding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`x @ weight^T + bias` in every cell, one batched product.

    Args:
        x: `[E, ..., in]`.
        weight: `[E, out, in]`.
        bias: `[E, out]`.

    Returns:
        `[E, ..., out]`.
    """
    rows: Tensor = _Linear.apply(  # type: ignore[no-untyped-call]
        x.reshape(x.shape[0], -1, x.shape[-1]), weight, bias
    )
    return rows.view(*x.shape[:-1], weight.shape[1])


class _Linear(torch.autograd.Function):
    """Its gradients are the products that `F.linear` forms: those of `baddbmm` are their transposes, and round so."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (grad,) = grads
        own = (torch.bmm(grad.transpose(1, 2), x), grad.sum(1)) if ctx.needs_input_grad[1] else (None, None)
        return torch.bmm(grad, weight), *own


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Layer norm over the last dimension with the gain and offset of each cell.

    On a CPU it is PyTorch's own kernel, cell by cell: its backward pass rounds otherwise than a norm without gain
    followed by the gain, and a cell of a stack must get the bits of a cell alone.

    Args:
        x: `[E, ..., width]`.
        weight: `[E, width]`.
        bias: `[E, width]`.
    """
    width = (x.shape[-1],)
    if x.device.type == "cpu":
        cells = zip(x.unbind(), weight.unbind(), bias.unbind(), strict=True)
        return torch.stack([F.layer_norm(own, width, gain, offset) for own, gain, offset in cells])
    shape = (len(x), *[1] * (x.dim() - 2), *width)
    return torch.addcmul(bias.view(shape), F.layer_norm(x, width), weight.view(shape))


def embedding(tokens: Tensor, table: Tensor) -> Tensor:
    """Rows of the table of each cell.

    Args:
        tokens: int64 `[E, ...]`, indices into the cell's own table.
        table: `[E, N, width]`.

    Returns:
        `[E, ..., width]`.
    """
    cells, size, width = table.shape
    first = torch.arange(0, cells * size, size, device=table.device).view(cells, *[1] * (tokens.dim() - 1))
    return F.embedding(tokens + first, table.view(cells * size, width))
