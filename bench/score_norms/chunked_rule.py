"""Score norms of a head whose logits never exist: its gradients by logits are found again, block by block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.linear import gram_is_cheaper
from vcpo_bench.bench.score_norms.row_layout import Layout
from vcpo_bench.bench.score_norms.rules import HeadRule, working
from vcpo_bench.bench.score_norms.vocabulary import Places, Sent, Vocabulary, sent_to


class ChunkedHeadRule(HeadRule):
    """A linear head that returned [B, T, 2] log-probabilities and entropies: see `ChunkedHead`.

    With g_t [V] the gradient by the logits of place t (see `vocabulary`), the gradient of a trajectory is that of any
    linear layer, sum_t g_t a_t^T and sum_t g_t. Its squared norm is summed over blocks of the vocabulary, either of
    that matrix or of g_t . g_s in sum_{t,s} (g_t . g_s) (a_t . a_s + 1). Here `a` is `Places` [B, T] and `b` [B, T, 2].

    Args:
        vocabulary: The head, unchanged between the forward pass and the last question.
    """

    joinable = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        head = vocabulary.head
        self.vocabulary = vocabulary
        self.has_weight = bool(head.weight.requires_grad)
        self.has_bias = head.bias is not None and bool(head.bias.requires_grad)
        self.parameters = [p for p, trained in ((head.weight, self.has_weight), (head.bias, self.has_bias)) if trained]

    @property
    def is_plain(self) -> bool:
        """See `HeadRule.is_plain`."""
        return self.has_weight

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: int) -> Places:
        """See `Rule.read`."""
        places: Places = args[1]
        return places

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: Layout) -> tuple[Places, Tensor]:
        """See `Rule.arrange`."""
        return Places(*(layout.rows(each, shape, real=False) for each in inputs)), layout.rows(gradient, shape)

    def squared(self, a: Places, b: Tensor) -> Tensor:
        """See `Rule.squared`."""
        sent, counts, read = self._in_a_row(a, b)
        V, d, xs = len(self.vocabulary.weight), read.shape[1], torch.split(read, counts)
        grams = [x.new_zeros(len(x), len(x)) if gram_is_cheaper(len(x), d, V) else None for x in xs]
        total = b.new_zeros(len(b))
        for block in self.vocabulary.blocks(max(read.shape)):
            for i, y in enumerate(torch.split(self.vocabulary.by_logit(sent, block), counts)):
                gram = grams[i]
                if gram is None:
                    total[i] += torch.linalg.vector_norm(y.t() @ xs[i]).square()
                else:
                    gram.addmm_(y, y.t())
        for i, gram in enumerate(grams):
            if gram is not None:
                total[i] = (gram * (xs[i] @ xs[i].t())).sum()
        return total

    def per_row(self, a: Places, b: Tensor) -> list[Tensor]:
        """See `Rule.per_row`."""
        one = b.new_ones(1)
        rows = [self.weighted(Places(*(x[i : i + 1] for x in a)), b[i : i + 1], one) for i in range(len(b))]
        return [torch.stack(gradients) for gradients in zip(*rows, strict=True)]

    def weighted(self, a: Places, b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `Rule.weighted`."""
        sent, _ = sent_to(a, b * weights.to(b.dtype)[:, None, None])
        to_weight, to_bias = self.vocabulary.to_head(sent, self.vocabulary.exact)
        return [*[to_weight] * self.has_weight, *[to_bias] * self.has_bias]

    def inner(self, a: Places, b: Tensor) -> Tensor:
        """See `Rule.inner`."""
        sent, counts, read = self._in_a_row(a, b)
        total, xs = b.new_zeros(len(b), len(b)), torch.split(read, counts)
        for block in self.vocabulary.blocks(max(len(read), len(b) * read.shape[1])):
            ys = torch.split(self.vocabulary.by_logit(sent, block), counts)
            rows = torch.stack([(y.t() @ x).flatten() for x, y in zip(xs, ys, strict=True)])
            total += rows @ rows.t()
        return total

    def cross(self, a: Places, b: Tensor, ids: Tensor, e: Tensor) -> Tensor:
        """See `HeadRule.cross`."""
        total = b.new_zeros(len(b))
        for i in range(len(b)):
            sent, _ = sent_to(Places(*(each[i] for each in a)), b[i])
            for part in self.vocabulary.stretches(sent, len(ids[i])):
                products = self._read(part) @ e[i].t()
                total[i] += torch.vdot(self.vocabulary.by_logit_of(part, ids[i]).flatten(), products.flatten())
        return total

    def _in_a_row(self, a: Places, b: Tensor) -> tuple[Sent, list[int], Tensor]:
        """The places that count, how many of each trajectory, and what multiplies their g_t: [N, H], [N, H + 1], .."""
        sent, counted = sent_to(a, b)
        hidden = self._read(sent)
        columns = [*[hidden] * self.has_weight, *[hidden.new_ones(len(hidden), 1)] * self.has_bias]
        return sent, counted.sum(1).tolist(), torch.cat(columns, 1) if len(columns) > 1 else columns[0]

    def _read(self, sent: Sent) -> Tensor:
        """[N, H], what the head read, in the precision in which it did."""
        return working(sent.places.hidden.to(self.vocabulary.dtype))
