"""A softmax head over a large vocabulary, computed in chunks, so that the full logits are never in memory at once.

With logits z = W a + bias [V] and p = softmax(z), the gradient with respect to z_v at a position with target y is
c (1[v = y] - p_v) for c times its log-probability, and -e p_v (log p_v + entropy) for e times its entropy. Any chunk of
this gradient is recomputed from a, a chunk of W and the log of the normalizer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.products import product, stays_bfloat16
from vcpo_bench.bench.score_norms.rules import at_least_float32

CHUNK_BYTES = 2**27
"""Bytes of logits in memory at once; two or three buffers of this size are in use."""


class HeadPositions(NamedTuple):
    """Input of a head at some positions, and the statistics from which its gradients are recomputed.

    Attributes:
        hidden: [..., H], input of the head.
        targets: int64 [...], the tokens chosen.
        logp: [...], their log-probabilities.
        normalizer: [...], log of the sum of the exponentials of the logits.
        entropy: [...], in nats.
    """

    hidden: Tensor
    targets: Tensor
    logp: Tensor
    normalizer: Tensor
    entropy: Tensor


class TokenStatistics(NamedTuple):
    """Statistics of N positions.

    Attributes:
        logp: [N], see `HeadPositions`.
        normalizer: [N], see `HeadPositions`.
        entropy: [N], see `HeadPositions`.
        sum_pi_sq: [N], sums of squared probabilities.
        slope: [N, H], gradient of each log-probability with respect to the head's input; None if not requested.
    """

    logp: Tensor
    normalizer: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor
    slope: Tensor | None


class HeadGradients(NamedTuple):
    """Positions with their gradients: the N that have one, flattened, or all of [B, T].

    Attributes:
        positions: The positions, with leading axes [N] or [B, T].
        d_logp: Gradients with respect to their log-probabilities: c.
        d_entropy: Gradients with respect to their entropies: e; None if all are 0.
    """

    positions: HeadPositions
    d_logp: Tensor
    d_entropy: Tensor | None

    def part(self, part: slice) -> HeadGradients:
        """A slice of the first axis."""
        d_entropy = None if self.d_entropy is None else self.d_entropy[part]
        return HeadGradients(HeadPositions(*(each[part] for each in self.positions)), self.d_logp[part], d_entropy)


def with_gradient(positions: HeadPositions, gradient: Tensor) -> tuple[HeadGradients, Tensor]:
    """Select the positions with a nonzero gradient.

    Args:
        positions: The positions, with leading axes [...].
        gradient: [..., 2], gradients with respect to log-probabilities and entropies.

    Returns:
        The selected positions, and bool [...], True where a position is selected.
    """
    counted = (gradient != 0).any(-1)
    places = counted.nonzero(as_tuple=True)  # once: their number is waited for
    return _head_gradients(HeadPositions(*(each[places] for each in positions)), gradient[places]), counted


def with_zeros(positions: HeadPositions, gradient: Tensor) -> HeadGradients:
    """All positions [B, T]; those without a gradient are zeros, and so are their gradients with respect to logits."""
    empty = (gradient == 0).all(-1)
    hidden, *numbers = positions
    kept = [hidden.masked_fill(empty.unsqueeze(-1), 0), *(each.masked_fill(empty, 0) for each in numbers)]
    return _head_gradients(HeadPositions(*kept), gradient)


def _head_gradients(positions: HeadPositions, gradient: Tensor) -> HeadGradients:
    d_logp, d_entropy = gradient.unbind(-1)
    return HeadGradients(positions, d_logp, d_entropy if bool(d_entropy.any()) else None)


class ChunkedVocabulary:
    """A linear head, evaluated in chunks of the vocabulary or of the positions.

    Args:
        head: Has a weight [V, H] and a bias [V] or None.
        dtype: Dtype of products with the weight; everything else is in float32, or in float64 if this is.
        chunk_bytes: Bytes of logits in memory at once.
    """

    def __init__(self, head: Any, dtype: torch.dtype, chunk_bytes: int) -> None:
        self.head, self.dtype, self.chunk_bytes = head, dtype, chunk_bytes
        self.exact = torch.promote_types(dtype, torch.float32)

    @property
    def weight(self) -> Tensor:
        """[V, H], without gradient."""
        found: Tensor = self.head.weight.detach()
        return found

    @property
    def bias(self) -> Tensor | None:
        """[V], without gradient, or None."""
        return None if self.head.bias is None else self.head.bias.detach()

    def chunks(self, numbers: int) -> list[slice]:
        """Ranges of the vocabulary such that `numbers` values per token of a range take at most `chunk_bytes`."""
        return self.parts(self.weight.shape[0], numbers)

    def pieces(self, grads: HeadGradients, numbers: int) -> list[HeadGradients]:
        """N positions in pieces such that `numbers` values per position of a piece take at most `chunk_bytes`."""
        return [grads.part(part) for part in self.parts(len(grads.d_logp), numbers)]

    def parts(self, count: int, numbers: int) -> list[slice]:
        """Ranges of `count` indices such that `numbers` values per index of a range take at most `chunk_bytes`."""
        return slices(count, self.chunk_bytes // (self.exact.itemsize * max(1, numbers)))

    @torch.no_grad()
    def read(self, hidden: Tensor, targets: Tensor, slopes: bool) -> TokenStatistics:
        """Statistics of inputs [N, H] and their targets [N], a few positions at a time over the whole vocabulary.

        The slope of a log-probability, W_y - sum_v p_v W_v, is computed along the way for the backward pass. That makes
        two products in all; recomputing the logits would make three.
        """
        weight, bias = self.weight.to(self.dtype), self.bias
        rows = self.chunk_bytes // (self.exact.itemsize * len(weight))
        numbers = hidden.new_empty((4, len(hidden)), dtype=self.exact)
        slope = torch.empty_like(hidden) if slopes else None
        for part in slices(len(hidden), rows):
            logits = _logits(hidden[part], weight, bias)
            p = _statistics(logits, targets[part].unsqueeze(1), numbers[:, part])
            if slope is not None:
                own = -numbers[0, part].expm1().unsqueeze(1)  # 1 - p at the target, exact also where p is nearly 1
                slope[part] = _product(p.neg_().scatter_(1, targets[part].unsqueeze(1), own).to(self.dtype), weight)
        logp, normalizer, entropy, squares = numbers.unbind(0)
        return TokenStatistics(logp, normalizer, entropy, squares, slope)

    def logit_gradient(self, grads: HeadGradients, chunk: slice) -> Tensor:
        """[N, v] or [B, T, v] gradient with respect to the logits of a range of v tokens."""
        found = self._elsewhere(grads, chunk)
        column = grads.positions.targets - chunk.start
        inside = (column >= 0) & (column < found.shape[-1])
        column = column.clamp(0, found.shape[-1] - 1).unsqueeze(-1)
        chosen = torch.where(inside, _at_target(grads), found.gather(-1, column).squeeze(-1))
        return found.scatter_(-1, column, chosen.unsqueeze(-1))

    def logit_gradient_of(self, grads: HeadGradients, ids: Tensor) -> Tensor:
        """[N, U] gradient with respect to the logits of tokens int64 [U], in any order; or [B, T, U], of [B, U]."""
        here = grads.positions.targets.unsqueeze(-1) == ids.unsqueeze(-2)
        return torch.where(here, _at_target(grads).unsqueeze(-1), self._elsewhere(grads, ids))

    def hidden_gradient(self, grads: HeadGradients) -> Tensor:
        """[N, H] gradient with respect to the head's input."""
        total = torch.zeros_like(grads.positions.hidden, dtype=self.exact)
        for chunk in self.chunks(len(total)):
            total += _product(self.logit_gradient(grads, chunk).to(self.dtype), self.weight[chunk].to(self.dtype))
        return total

    def head_gradient(self, grads: HeadGradients, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Gradients [V, H] and [V] with respect to weight and bias; products are computed in `dtype`."""
        read = grads.positions.hidden.to(self.dtype).to(dtype)
        d_weight = torch.empty_like(self.weight, dtype=self.exact)
        d_bias = d_weight.new_empty(len(d_weight))
        for chunk in self.chunks(max(read.shape)):
            found = self.logit_gradient(grads, chunk)
            d_weight[chunk] = _sums(found.t().to(dtype), read)
            d_bias[chunk] = found.sum(0)
        return d_weight, d_bias

    def _elsewhere(self, grads: HeadGradients, columns: slice | Tensor) -> Tensor:
        """Gradient with respect to the logits of some tokens, for positions with another target."""
        weight, bias, positions = self.weight[columns].to(self.dtype), self.bias, grads.positions
        log_p = _logits(positions.hidden, weight, None if bias is None else bias[columns].unsqueeze(-2))
        log_p.sub_(positions.normalizer.unsqueeze(-1))
        if grads.d_entropy is None:
            return log_p.exp_().mul_(-grads.d_logp.unsqueeze(-1))
        factor = (log_p + positions.entropy.unsqueeze(-1)).mul_(grads.d_entropy.unsqueeze(-1))
        return log_p.exp_().mul_(factor.add_(grads.d_logp.unsqueeze(-1))).neg_()


def slices(count: int, size: int) -> list[slice]:
    """The range of `count` indices in pieces of `size`, at least 1."""
    size = max(1, size)
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def _statistics(logits: Tensor, targets: Tensor, numbers: Tensor) -> Tensor:
    """Write the first four of `TokenStatistics` to `numbers` [4, n] and return probabilities; overwrites `logits`."""
    top = logits.amax(1, keepdim=True)
    p = logits.sub_(top).exp()
    total = p.sum(1, keepdim=True)
    p.div_(total)
    log_total = total.log()
    numbers[0] = (logits.gather(1, targets) - log_total).squeeze(1)
    numbers[1] = (top + log_total).squeeze(1)
    numbers[2] = log_total.squeeze(1) - torch.linalg.vecdot(p, logits)
    numbers[3] = torch.linalg.vecdot(p, p)
    return p


def _at_target(grads: HeadGradients) -> Tensor:
    """Gradient with respect to the logit of each position's target itself."""
    logp = grads.positions.logp
    found = -grads.d_logp * logp.expm1()
    return found if grads.d_entropy is None else found - grads.d_entropy * logp.exp() * (logp + grads.positions.entropy)


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Logits [n, v] or [B, T, v] in float32 at least."""
    logits = at_least_float32(_product(hidden.to(weight.dtype), weight.mT))
    return logits if bias is None else logits.add_(bias)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product in the dtype of both factors, also under autocast."""
    with torch.autocast(left.device.type, enabled=False):
        return left @ right


def _sums(left: Tensor, right: Tensor) -> Tensor:
    """The same, in float32 where the device does not have to round it to bfloat16."""
    if not stays_bfloat16(left):
        return _product(left, right)
    with torch.autocast(left.device.type, enabled=False):
        return product(left, right)
