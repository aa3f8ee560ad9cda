"""Linear layers: torch's, and GPT-2's Conv1D that stores the weight transposed."""

from typing import Any

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.products import factor, product, scaled, stays_bfloat16, weighted_positions
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import HeadRule, at_least_float32, inner_products, sum_squares

LANES = 8


class LinearRule(HeadRule):
    """y_t = W a_t + bias: the gradient of a trajectory is sum_t b_t a_t^T and sum_t b_t.

    The squared norm is that of the matrix, or sum_{t,s} (b_t . b_s) (a_t . a_s + 1) from two [T, T] Gram matrices (the
    1 is the bias), whichever costs less for these shapes.

    Args:
        weight: [p, d] ([d, p] if transposed), or None if it is frozen.
        bias: [p], or None if there is none or it is frozen.
        transposed: The layer multiplies by `weight` as stored (Conv1D of GPT-2) instead of its transpose.
    """

    def __init__(self, weight: nn.Parameter | None, bias: nn.Parameter | None, transposed: bool = False) -> None:
        self.has_weight, self.has_bias, self.transposed = weight is not None, bias is not None, transposed
        self.parameters = [parameter for parameter in (weight, bias) if parameter is not None]

    @property
    def is_plain(self) -> bool:
        """See `HeadRule.is_plain`."""
        return self.has_weight and not self.transposed

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """See `LayerRule.arrange`; under autocast the layer casts its input to the dtype of its output."""
        a, b = super().arrange(inputs.to(gradient.dtype), gradient, shape, layout)
        return a, b

    def squared(self, a: Tensor, b: Tensor) -> Tensor:
        """See `LayerRule.squared`."""
        if not self.has_weight or not gram_is_cheaper(a.shape[1], a.shape[2], b.shape[2]):
            return sum_squares(self.per_row(a, b))
        inputs, outputs = gram(a), gram(b)
        if self.has_bias:
            inputs += 1.0
        return (inputs * outputs).sum((1, 2))

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        a, b = factor(a), factor(b)
        gradients = []
        if self.has_weight:
            left, right = (a, b) if self.transposed else (b, a)
            gradients.append(product(left.transpose(1, 2), right))
        if self.has_bias:
            gradients.append(b.sum(1, dtype=torch.promote_types(b.dtype, torch.float32)))
        return gradients

    def per_row_if_small(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `LayerRule.per_row_if_small`; compares with the size of inputs and output gradients."""
        T, d, p = a.shape[1], a.shape[2], b.shape[2]
        wider = 2 if stays_bfloat16(b) else 1  # gradients are float32, and would be kept in place of bfloat16
        return self.per_row(a, b) if 2 * wider * p * d <= 3 * T * (p + d) else None

    def weighted(self, a: Tensor, b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `LayerRule.weighted`."""
        each = weights.repeat_interleave(a.shape[1])
        a, b = factor(a).flatten(0, 1), factor(b).flatten(0, 1)
        gradients = []
        if self.has_weight:
            # scale the narrower of the two: its copy is the whole overhead
            left, right = (a, scaled(b, each)) if b.shape[1] <= a.shape[1] else (scaled(a, each), b)
            gradients.append(product(left.t(), right) if self.transposed else product(right.t(), left))
        if self.has_bias:
            gradients.append(weighted_positions(each, b))
        return gradients

    def inner(self, a: Tensor, b: Tensor) -> Tensor:
        """See `LayerRule.inner`."""
        B, T, d = a.shape
        if not self.has_weight or not gram_is_cheaper(B * T, d, b.shape[2]):
            return inner_products(self.per_row(a, b))
        a, b = factor(a).flatten(0, 1), factor(b).flatten(0, 1)
        products = (product(a, a.t()) + float(self.has_bias)).mul_(product(b, b.t()))
        return products.view(B, T, B, T).sum((1, 3))

    def cross(self, a: Tensor, b: Tensor, ids: Tensor, e: Tensor) -> Tensor:
        """See `HeadRule.cross`."""
        picked = at_least_float32(b.gather(2, ids[:, None, :].expand(-1, b.shape[1], -1)))
        products = torch.bmm(at_least_float32(a), e.transpose(1, 2))
        found: Tensor = torch.linalg.vecdot(picked.flatten(1), products.flatten(1))
        return found


def gram(x: Tensor) -> Tensor:
    """The inner products of the positions of every row of [B, T, d], in float32 at least: [B, T, T].

    On a CPU, matrix products are twice as fast where T fills whole vector registers. There every row is viewed as a
    few positions longer than it is, reaching into the next row, and the result is cut to size. Nothing is copied.
    """
    x = factor(x)
    B, T, d = x.shape
    P = -(-T // LANES) * LANES
    longer_pays = P != T and 3 * P <= 4 * T and B > 1 and x.is_contiguous()
    if stays_bfloat16(x) or x.device.type != "cpu" or not longer_pays:
        return product(x, x.transpose(1, 2))
    longer = x.as_strided((B - 1, P, d), (T * d, d, 1))
    products = x.new_empty(B, P, P)
    torch.bmm(longer, longer.transpose(1, 2), out=products[:-1])
    torch.mm(x[-1], x[-1].t(), out=products[-1, :T, :T])
    return products[:, :T, :T]


def gram_is_cheaper(T: int, d: int, p: int) -> bool:
    """Whether two [T, T] Gram matrices need less work than one [p, d] gradient per trajectory.

    Then they also need less than half the memory: sqrt(p d) <= (p + d) / 2, so that T (p + d) < p d means p d > 4 T^2.
    """
    return T * (p + d) < p * d
