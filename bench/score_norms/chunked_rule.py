"""Score norms for an LM head computed in vocabulary chunks.

Gradients with respect to the logits are recomputed chunk by chunk, so the full logits are never materialized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.linear import gram_is_cheaper
from vcpo_bench.bench.score_norms.products import add_gram, exact_product, factor, product
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import HeadRule, at_least_float32
from vcpo_bench.bench.score_norms.vocabulary import (
    ChunkedVocabulary,
    HeadGradients,
    HeadPositions,
    with_gradient,
    with_zeros,
)

ONE_BY_ONE = frozenset({"cpu"})
"""Types of devices that compute one trajectory after the other, without padding; others would wait for each launch."""
MOST_PADDED = 4
"""Most positions, with padding, to compute for each that has a gradient: more would take longer than the launches."""


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
        grads, apart = by_trajectory(a, b)
        read = self._read(grads)
        V, d, xs = len(self.vocabulary.weight), read.shape[-1], apart(read)
        grams = [b.new_zeros(*x.shape[:-1], x.shape[-2]) if gram_is_cheaper(x.shape[-2], d, V) else None for x in xs]
        total = [b.new_zeros(x.shape[:-2]) for x in xs]
        for chunk in self.vocabulary.chunks(read.shape[:-2].numel() * max(read.shape[-2:])):
            for i, y in enumerate(apart(self.vocabulary.logit_gradient(grads, chunk))):
                gram = grams[i]
                if gram is None:
                    total[i] += torch.linalg.vector_norm(exact_product(y.mT, xs[i]), dim=(-2, -1)).square()
                else:
                    add_gram(gram, y, xs[i])
        for i, gram in enumerate(grams):
            if gram is not None:
                total[i] = (gram * product(xs[i], xs[i].mT)).sum((-2, -1))
        return torch.cat([b.new_zeros(0), *(each.flatten() for each in total)])

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
        grads, apart = by_trajectory(a, b)
        read = at_least_float32(self._read(grads))
        total, xs, d = b.new_zeros(len(b), len(b)), apart(read), read.shape[-1]
        for chunk in self.vocabulary.chunks(max(read.numel() // d, len(b) * d)):
            ys = apart(self.vocabulary.logit_gradient(grads, chunk))
            rows = torch.stack([(y.mT @ x).flatten(-2) for x, y in zip(xs, ys, strict=True)]).flatten(0, -2)
            total += rows @ rows.t()
        return total

    def cross(self, a: HeadPositions, b: Tensor, ids: Tensor, e: Tensor) -> Tensor:
        """See `HeadRule.cross`."""
        total = b.new_zeros(len(b))
        for rows, grads in self._pieces(a, b, ids.shape[1]):
            products = at_least_float32(self._inputs(grads)) @ e[rows].mT
            found = self.vocabulary.logit_gradient_of(grads, ids[rows])
            total[rows] += torch.linalg.vecdot(found.flatten(-2), products.flatten(-2))
        return total

    def _pieces(self, a: HeadPositions, b: Tensor, ids: int) -> Iterator[tuple[int | slice, HeadGradients]]:
        """Positions in pieces of one trajectory or of several, each with its index, for `ids` values per position."""
        numbers = ids * max(a.hidden.shape[1:])
        if together(b) and numbers * self.vocabulary.exact.itemsize <= self.vocabulary.chunk_bytes:
            grads = with_zeros(a, b)
            yield from ((part, grads.part(part)) for part in self.vocabulary.parts(len(b), numbers))
            return
        grads, counted = with_gradient(a, b)
        ends = counted.sum(1).cumsum(0).tolist()
        for i, (begin, end) in enumerate(pairwise([0, *ends])):
            yield from ((i, piece) for piece in self.vocabulary.pieces(grads.part(slice(begin, end)), ids))

    def _read(self, grads: HeadGradients) -> Tensor:
        """The factors of g_t: [..., H], or [..., H + 1] with a bias."""
        hidden = self._inputs(grads)
        columns = [*[hidden] * self.has_weight, *[hidden.new_ones(*hidden.shape[:-1], 1)] * self.has_bias]
        return torch.cat(columns, -1) if len(columns) > 1 else columns[0]

    def _inputs(self, grads: HeadGradients) -> Tensor:
        """[..., H], input of the head in the precision it was used in, as a factor of products."""
        return factor(grads.positions.hidden.to(self.vocabulary.dtype))


def together(b: Tensor) -> bool:
    """Whether trajectories are padded and computed together."""
    return b.device.type not in ONE_BY_ONE and b[..., 0].numel() <= MOST_PADDED * int((b != 0).any(-1).sum())


def by_trajectory(a: HeadPositions, b: Tensor) -> tuple[HeadGradients, Callable[[Tensor], Sequence[Tensor]]]:
    """Positions, and what takes values of them apart: into [n, ...] of each trajectory, or [B, T, ...] of all."""
    if together(b):
        return with_zeros(a, b), lambda values: [values]
    grads, counted = with_gradient(a, b)
    counts = counted.sum(1).tolist()
    return grads, lambda values: torch.split(values, counts)
