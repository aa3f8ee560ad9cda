"""An output head that gives log-probabilities instead of logits, and whose score norms are exact all the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vcpo_bench.bench.score_norms.chunked_rule import ChunkedHeadRule
from vcpo_bench.bench.score_norms.rules import RuledLayer
from vcpo_bench.bench.score_norms.vocabulary import CHUNK_BYTES, Places, Vocabulary, sent_to


class HeadStatistics(NamedTuple):
    """What the distributions at [B, T] places say; 0 at places that were left out.

    Attributes:
        logp: [B, T] log-probability of the target, differentiable.
        entropy: [B, T] in nats, differentiable.
        sum_pi_sq: [B, T] sum of squared probabilities.
    """

    logp: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor


class ChunkedHead(RuledLayer):
    """Reads hidden states and targets; goes through the vocabulary of a linear head in blocks.

    For `ScoreNorms` it is one layer, whose output is the log-probabilities and entropies themselves. It owns no
    parameter: weight and bias stay those of the head, which may be tied to an embedding, or frozen. Make it a submodule
    of the model, in place of the head's own call:

        model.chunked = ChunkedHead(model.lm_head)
        logp = model.chunked.statistics(hidden, targets, mask).logp

    Args:
        head: `nn.Linear` with weight [V, H]; log-probabilities are those of its softmax.
        dtype: What products with the weight are computed in; all else is in float32, or float64 if this is.
        chunk_bytes: Size of the logits that exist at once.
    """

    def __init__(self, head: nn.Module, dtype: torch.dtype = torch.float32, chunk_bytes: int = CHUNK_BYTES) -> None:
        super().__init__()
        self.vocabulary = Vocabulary(head, dtype, chunk_bytes)  # not a module: the head belongs to the model

    def score_norm_rule(self) -> ChunkedHeadRule:
        """See `RuledLayer`."""
        return ChunkedHeadRule(self.vocabulary)

    def statistics(self, hidden: Tensor, targets: Tensor, mask: Tensor) -> HeadStatistics:
        """Log-probabilities, entropies and sums of squares.

        Args:
            hidden: [B, T, H], what the head reads.
            targets: int64 [B, T].
            mask: bool [B, T], False at places to leave out.
        """
        slopes = hidden.requires_grad and torch.is_grad_enabled()
        with torch.autocast(hidden.device.type, enabled=False):  # which would round what is summed over the vocabulary
            found = self.vocabulary.read(hidden.detach()[mask], targets[mask], slopes)
        logp, normalizer, entropy, squares = (_spread(each, mask) for each in found[:4])
        slope = None if found.slope is None else _spread(found.slope, mask)
        pair = self(hidden, Places(hidden.detach(), targets, logp, normalizer, entropy), slope)
        logp, entropy = torch.where(mask.unsqueeze(-1), pair, 0.0).unbind(-1)
        return HeadStatistics(logp, entropy, squares)

    def forward(self, hidden: Tensor, places: Places, slope: Tensor | None) -> Tensor:
        """Give statistics that are known already their gradients; what the hooks of `ScoreNorms` see.

        Args:
            hidden: [B, T, H], differentiable.
            places: The same without gradient, and the statistics.
            slope: [B, T, H], see `vocabulary.Reading`; None where `hidden` needs no gradient.

        Returns:
            [B, T, 2], log-probabilities and entropies.
        """
        pair: Tensor = _Statistics.apply(hidden, self.vocabulary, slope, self.vocabulary.weight, *places)  # type: ignore[no-untyped-call]
        head = self.vocabulary.head
        zeros: Tensor = _HeadPath.apply(head.weight, head.bias, self.vocabulary, *places)  # type: ignore[no-untyped-call]
        return pair + zeros if zeros.requires_grad else pair


class _Statistics(torch.autograd.Function):
    """Log-probabilities and entropies [B, T, 2], with the gradient by what the head read."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, vocabulary: Vocabulary, slope: Tensor | None, weight: Tensor, *places: Tensor
    ) -> Tensor:
        ctx.vocabulary = vocabulary
        ctx.save_for_backward(slope, weight, *places)  # the weight only so that a change in place is noticed
        known = Places(*places)
        return torch.stack([known.logp, known.entropy], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        slope, _, *tensors = ctx.saved_tensors
        places = Places(*tensors)
        to_hidden = slope * gradient[..., :1]
        by_entropy = torch.stack([torch.zeros_like(gradient[..., 1]), gradient[..., 1]], -1)
        if bool(by_entropy.any()):
            sent, counted = sent_to(places, by_entropy)
            to_hidden[counted] += ctx.vocabulary.to_hidden(sent).to(to_hidden.dtype)
        return to_hidden.to(places.hidden.dtype), *[None] * (3 + len(places))


class _HeadPath(torch.autograd.Function):
    """Zeros [B, T, 2] whose backward is that of `_Statistics` by weight and bias.

    A node of its own, which a backward that asks for no parameter, as that for score norms, does not run.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, vocabulary: Vocabulary, *places: Tensor) -> Tensor:
        ctx.vocabulary = vocabulary
        ctx.save_for_backward(weight, *places)
        return places[2].new_zeros(*places[2].shape, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weight, *places = ctx.saved_tensors
        sent, _ = sent_to(Places(*places), gradient)
        to_weight, to_bias = ctx.vocabulary.to_head(sent, ctx.vocabulary.dtype)
        needed = zip((to_weight, to_bias), ctx.needs_input_grad[:2], strict=True)
        return *(found.to(weight.dtype) if asked else None for found, asked in needed), *[None] * (1 + len(places))


def _spread(values: Tensor, mask: Tensor) -> Tensor:
    """[B, T, ...] with values [N, ...] where the mask [B, T] is True, 0 elsewhere."""
    spread = values.new_zeros(*mask.shape, *values.shape[1:])
    spread[mask] = values
    return spread
