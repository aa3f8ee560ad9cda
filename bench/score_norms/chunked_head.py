"""An output head that returns log-probabilities instead of logits, with exact score norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vcpo_bench.bench.score_norms.chunked_rule import ChunkedHeadRule
from vcpo_bench.bench.score_norms.rules import RuledLayer
from vcpo_bench.bench.score_norms.vocabulary import CHUNK_BYTES, ChunkedVocabulary, HeadPositions, with_gradient


class HeadStatistics(NamedTuple):
    """Statistics of the distributions at [B, T] positions; 0 at positions that were left out.

    Attributes:
        logp: [B, T] log-probability of the target, differentiable.
        entropy: [B, T] in nats, differentiable.
        sum_pi_sq: [B, T] sum of squared probabilities.
    """

    logp: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor


class ChunkedHead(RuledLayer):
    """Computes the log-probabilities of a linear head in chunks of the vocabulary.

    `ScoreNorms` treats it as one layer whose outputs are the log-probabilities and entropies. It owns no parameters:
    weight and bias stay those of the head, which may be tied to an embedding, or frozen. Make it a submodule of the
    model, and call it in place of the head:

        model.chunked = ChunkedHead(model.lm_head)
        logp = model.chunked.statistics(hidden, targets, mask).logp

    Args:
        head: `nn.Linear` with weight [V, H]; log-probabilities are those of its softmax.
        dtype: Dtype of products with the weight; everything else is in float32, or in float64 if this is.
        chunk_bytes: Bytes of logits in memory at once.
    """

    def __init__(self, head: nn.Module, dtype: torch.dtype = torch.float32, chunk_bytes: int = CHUNK_BYTES) -> None:
        super().__init__()
        self.vocabulary = ChunkedVocabulary(head, dtype, chunk_bytes)  # not a module: the head belongs to the model

    def score_norm_rule(self) -> ChunkedHeadRule:
        """See `RuledLayer`."""
        return ChunkedHeadRule(self.vocabulary)

    def statistics(self, hidden: Tensor, targets: Tensor, mask: Tensor) -> HeadStatistics:
        """Log-probabilities, entropies and sums of squares.

        Args:
            hidden: [B, T, H], input of the head.
            targets: int64 [B, T].
            mask: bool [B, T], False at positions to leave out.
        """
        slopes = hidden.requires_grad and torch.is_grad_enabled()
        places = mask.nonzero(as_tuple=True)  # once: their number is waited for
        with torch.autocast(hidden.device.type, enabled=False):  # which would round sums over the vocabulary
            found = self.vocabulary.read(hidden.detach()[places], targets[places], slopes)
        logp, normalizer, entropy, squares = (_spread(each, places, mask.shape) for each in found[:4])
        slope = None if found.slope is None else _spread(found.slope, places, mask.shape)
        pair = self(hidden, HeadPositions(hidden.detach(), targets, logp, normalizer, entropy), slope)
        logp, entropy = torch.where(mask.unsqueeze(-1), pair, 0.0).unbind(-1)
        return HeadStatistics(logp, entropy, squares)

    def forward(self, hidden: Tensor, positions: HeadPositions, slope: Tensor | None) -> Tensor:
        """Attach gradients to known statistics; this is the call that the hooks of `ScoreNorms` see.

        Args:
            hidden: [B, T, H], differentiable.
            positions: The same without gradient, and the statistics.
            slope: [B, T, H], see `vocabulary.TokenStatistics`; None where `hidden` needs no gradient.

        Returns:
            [B, T, 2], log-probabilities and entropies.
        """
        pair: Tensor = _Statistics.apply(hidden, self.vocabulary, slope, self.vocabulary.weight, *positions)  # type: ignore[no-untyped-call]
        head = self.vocabulary.head
        zeros: Tensor = _HeadPath.apply(head.weight, head.bias, self.vocabulary, *positions)  # type: ignore[no-untyped-call]
        return pair + zeros if zeros.requires_grad else pair


class _Statistics(torch.autograd.Function):
    """Log-probabilities and entropies [B, T, 2], with their gradient with respect to the head's input."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        vocabulary: ChunkedVocabulary,
        slope: Tensor | None,
        weight: Tensor,
        *positions: Tensor,
    ) -> Tensor:
        ctx.vocabulary = vocabulary
        ctx.save_for_backward(slope, weight, *positions)  # the weight only so that in-place changes are detected
        known = HeadPositions(*positions)
        return torch.stack([known.logp, known.entropy], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        slope, _, *tensors = ctx.saved_tensors
        positions = HeadPositions(*tensors)
        d_hidden = slope * gradient[..., :1]
        d_entropy = torch.stack([torch.zeros_like(gradient[..., 1]), gradient[..., 1]], -1)
        if bool(d_entropy.any()):
            grads, counted = with_gradient(positions, d_entropy)
            d_hidden[counted] += ctx.vocabulary.hidden_gradient(grads).to(d_hidden.dtype)
        return d_hidden.to(positions.hidden.dtype), *[None] * (3 + len(positions))


class _HeadPath(torch.autograd.Function):
    """Zeros [B, T, 2] whose backward pass is that of `_Statistics` with respect to weight and bias.

    A node of its own: a backward pass that needs no parameter gradient, as for score norms, does not run it.
    """

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor | None, vocabulary: ChunkedVocabulary, *positions: Tensor
    ) -> Tensor:
        ctx.vocabulary = vocabulary
        ctx.save_for_backward(weight, *positions)
        return positions[2].new_zeros(*positions[2].shape, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, *positions = ctx.saved_tensors
        grads, _ = with_gradient(HeadPositions(*positions), gradient)
        d_weight, d_bias = ctx.vocabulary.head_gradient(grads, ctx.vocabulary.dtype)
        needed = zip((d_weight, d_bias), ctx.needs_input_grad[:2], strict=True)
        return *(found.to(weight.dtype) if asked else None for found, asked in needed), *[None] * (1 + len(positions))


def _spread(values: Tensor, places: tuple[Tensor, ...], shape: torch.Size) -> Tensor:
    """[B, T, ...] with values [N, ...] at N places, 0 elsewhere."""
    spread = values.new_zeros(*shape, *values.shape[1:])
    spread[places] = values
    return spread
