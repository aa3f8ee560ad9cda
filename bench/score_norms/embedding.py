"""Embeddings of tokens or positions."""

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vcpo_bench.bench.score_norms.rules import LayerRule, at_least_float32, sum_squares


class EmbeddingRule(LayerRule):
    """y_t = s W[id_t]: the gradient of a trajectory is, in row v, the sum of s b_t over the positions where id_t = v.

    Args:
        weight: [V, d].
        padding_idx: Row that never receives a gradient, or None.
        scale: The factor s; Gemma multiplies by the root of d.
    """

    def __init__(self, weight: nn.Parameter, padding_idx: int | None = None, scale: float = 1.0) -> None:
        self.parameters = [weight]
        self.padding_idx, self.scale = padding_idx, scale

    def squared(self, a: Tensor, b: Tensor) -> Tensor:
        """See `LayerRule.squared`."""
        B, T = a.shape
        V = self.parameters[0].shape[0]
        if self._is_small(T):
            return sum_squares(self.per_row(a, b))
        keys, inverse = torch.unique(self._keys(a), return_inverse=True)
        sums = scatter(inverse.view_as(a), self.counted(a, b), len(keys))
        return sums.new_zeros(B).index_add_(0, keys // V, sums.square().sum(1))

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        V, d = self.parameters[0].shape
        return [scatter(self._keys(a), self.counted(a, b), a.shape[0] * V).view(a.shape[0], V, d)]

    def weighted(self, a: Tensor, b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `LayerRule.weighted`."""
        b = self.counted(a, b)
        return [scatter(a, b * weights.to(b.dtype)[:, None, None], self.parameters[0].shape[0])]

    def inner(self, a: Tensor, b: Tensor) -> Tensor:
        """See `LayerRule.inner`."""
        B, T = a.shape
        b = self.counted(a, b).flatten(0, 1)
        same = a.flatten()[:, None] == a.flatten()
        return torch.where(same, b @ b.t(), 0.0).view(B, T, B, T).sum((1, 3))

    def per_row_if_small(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `LayerRule.per_row_if_small`."""
        return self.per_row(a, b) if self._is_small(a.shape[1]) else None

    def counted(self, ids: Tensor, b: Tensor) -> Tensor:
        """Gradients with respect to rows of the weight, from `b` [B, T, d]: zero at positions with the padding id."""
        b = at_least_float32(b) if self.scale == 1.0 else at_least_float32(b) * self.scale
        return b if self.padding_idx is None else b.masked_fill((ids == self.padding_idx).unsqueeze(-1), 0.0)

    def _is_small(self, T: int) -> bool:
        return self.parameters[0].shape[0] <= 2 * T

    def _keys(self, ids: Tensor) -> Tensor:
        """A number for each (row, id): [B, T]."""
        rows = torch.arange(ids.shape[0], device=ids.device)
        return ids + rows[:, None] * self.parameters[0].shape[0]


def scatter(keys: Tensor, values: Tensor, count: int) -> Tensor:
    """Sum values [..., d] with equal keys [...] in 0..count-1: [count, d]; the order of summation is fixed."""
    if values.device.type == "cpu":
        return values.new_zeros(count, values.shape[-1]).index_add_(0, keys.flatten(), values.flatten(0, -2))
    sums: Tensor = torch.ops.aten.embedding_dense_backward(values, keys, count, -1, False)
    return sums


def embedding_scale(layer: nn.Embedding) -> float | None:
    """The factor by which a layer multiplies what `nn.Embedding` looks up; None if it does something else.

    It is read from the layer's effect on a weight of ones, and must hold bit by bit for random weights, for every id.
    """
    ids = torch.arange(layer.num_embeddings, device=layer.weight.device).unsqueeze(0)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(layer.num_embeddings, 2, generator=generator).to(layer.weight)
    with torch.no_grad():
        try:
            ones = functional_call(layer, {"weight": torch.ones_like(weight)}, (ids,))
            found = functional_call(layer, {"weight": weight}, (ids,))
            scale = float(ones.flatten()[0])
            same = torch.equal(ones, torch.full_like(ones, scale)) and torch.equal(found, weight.unsqueeze(0) * scale)
        except Exception:  # it takes or returns something else, and may raise anything
            return None
    return scale if same else None
