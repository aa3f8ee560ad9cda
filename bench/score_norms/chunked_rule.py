"""Score norms for an LM head computed in vocabulary chunks.

Gradients with respect to the logits are recomputed chunk by chunk, so the full logits are never materialized.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.linear import gram_is_cheaper
from vcpo_bench.bench.score_norms.products import add_gram, exact_product, factor, product
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import HeadRule, at_least_float32
from vcpo_bench.bench.score_norms.vocabulary import ChunkedVocabulary, HeadGradients, HeadPositions, with_gradient


class ChunkedHeadRule(HeadRule):
    """A linear head that returned [B, T, 2] log-probabilities and entropies: see `ChunkedHead`.

    With g_t [V] the gradient with respect to the logits of position t (see `vocabulary`), the gradient of a trajectory
    is that of any linear layer, sum_t g_t a_t^T and sum_t g_t. Its squared norm is summed over vocabulary chunks,
    either of that matrix or of g_t . g_s in sum_{t,s} (g_t . g_s) (a_t . a_s + 1). Here `a` is `HeadPositions` [B, T]
    and `b` is [B, T, 2].

    Args:
        vocabulary: The head; it must not change between the forward pass and the last call.
    """

    joinable = False

    def __init__(self, vocabulary: ChunkedVocabulary) -> None:
        head = vocabulary.head
        self.vocabulary = vocabulary
        self.has_weight = bool(head.weight.requires_grad)
        self.has_bias = head.bias is not None and bool(head.bias.requires_grad)
        pairs = ((head.weight, self.has_weight), (head.bias, self.has_bias))
        self.parameters = [p for p, trained in pairs if trained]  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def is_plain(self) -> bool:
        """See `HeadRule.is_plain`."""
        return self.has_weight

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: int) -> HeadPositions:
        """See `LayerRule.read`."""
        positions: HeadPositions = args[1]
        return positions

    def arrange(
        self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout
    ) -> tuple[HeadPositions, Tensor]:
        """See `LayerRule.arrange`."""
        return HeadPositions(*(layout.rows(each, shape, real=False) for each in inputs)), layout.rows(gradient, shape)

    def squared(self, a: HeadPositions, b: Tensor) -> Tensor:
        """See `LayerRule.squared`."""
        grads, counts, read = self._flattened(a, b)
        V, d, xs = len(self.vocabulary.weight), read.shape[1], torch.split(read, counts)
        grams = [b.new_zeros(len(x), len(x)) if gram_is_cheaper(len(x), d, V) else None for x in xs]
        total = b.new_zeros(len(b))
        for chunk in self.vocabulary.chunks(max(read.shape)):
            for i, y in enumerate(torch.split(self.vocabulary.logit_gradient(grads, chunk), counts)):
                gram = grams[i]
                if gram is None:
                    total[i] += torch.linalg.vector_norm(exact_product(y.t(), xs[i])).square()
                else:
                    add_gram(gram, y, xs[i])
        for i, gram in enumerate(grams):
            if gram is not None:
                total[i] = (gram * product(xs[i], xs[i].t())).sum()
        return total

    def per_row(self, a: HeadPositions, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        one = b.new_ones(1)
        rows = [self.weighted(HeadPositions(*(x[i : i + 1] for x in a)), b[i : i + 1], one) for i in range(len(b))]
        return [torch.stack(gradients) for gradients in zip(*rows, strict=True)]

    def weighted(self, a: HeadPositions, b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `LayerRule.weighted`."""
        grads, _ = with_gradient(a, b * weights.to(b.dtype)[:, None, None])
        d_weight, d_bias = self.vocabulary.head_gradient(grads, self._inputs(grads.part(slice(0))).dtype)
        return [*[d_weight] * self.has_weight, *[d_bias] * self.has_bias]

    def inner(self, a: HeadPositions, b: Tensor) -> Tensor:
        """See `LayerRule.inner`."""
        grads, counts, read = self._flattened(a, b)
        total, xs = b.new_zeros(len(b), len(b)), torch.split(at_least_float32(read), counts)
        for chunk in self.vocabulary.chunks(max(len(read), len(b) * read.shape[1])):
            ys = torch.split(self.vocabulary.logit_gradient(grads, chunk), counts)
            rows = torch.stack([(y.t() @ x).flatten() for x, y in zip(xs, ys, strict=True)])
            total += rows @ rows.t()
        return total

    def cross(self, a: HeadPositions, b: Tensor, ids: Tensor, e: Tensor) -> Tensor:
        """See `HeadRule.cross`."""
        total = b.new_zeros(len(b))
        for i in range(len(b)):
            grads, _ = with_gradient(HeadPositions(*(each[i] for each in a)), b[i])
            for part in self.vocabulary.pieces(grads, len(ids[i])):
                products = at_least_float32(self._inputs(part)) @ e[i].t()
                total[i] += torch.vdot(self.vocabulary.logit_gradient_of(part, ids[i]).flatten(), products.flatten())
        return total

    def _flattened(self, a: HeadPositions, b: Tensor) -> tuple[HeadGradients, list[int], Tensor]:
        """Positions with a gradient, their count per trajectory, and the factors of their g_t: [N, H] or [N, H + 1]."""
        grads, counted = with_gradient(a, b)
        hidden = self._inputs(grads)
        columns = [*[hidden] * self.has_weight, *[hidden.new_ones(len(hidden), 1)] * self.has_bias]
        return grads, counted.sum(1).tolist(), torch.cat(columns, 1) if len(columns) > 1 else columns[0]

    def _inputs(self, grads: HeadGradients) -> Tensor:
        """[N, H], input of the head in the precision it was used in, as a factor of products."""
        return factor(grads.positions.hidden.to(self.vocabulary.dtype))
