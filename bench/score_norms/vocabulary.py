"""A softmax head over a large vocabulary, gone through in blocks, so that the logits of all places never exist at once.

With logits z = W a + bias [V] and p = softmax(z), the gradient by z_v of a place with target y is c (1[v = y] - p_v)
for c times its log-probability, and -e p_v (log p_v + entropy) for e times its entropy. Any block of its columns is
found again from a, one block of W and the logarithm of the normalizer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.rules import working

CHUNK_BYTES = 2**27
"""Size of the logits that exist at once; two or three buffers of this size are in use."""


class Places(NamedTuple):
    """What a head read, and what must be known to find its gradients again.

    Attributes:
        hidden: [..., H], what it read.
        targets: int64 [...], the tokens chosen.
        logp: [...], their log-probabilities.
        normalizer: [...], logarithm of the sum of the exponentials of the logits.
        entropy: [...], in nats.
    """

    hidden: Tensor
    targets: Tensor
    logp: Tensor
    normalizer: Tensor
    entropy: Tensor


class Reading(NamedTuple):
    """Statistics of N places.

    Attributes:
        logp: [N], see `Places`.
        normalizer: [N], see `Places`.
        entropy: [N], see `Places`.
        sum_pi_sq: [N], sums of squared probabilities.
        slope: [N, H], gradient of each log-probability by what the head read; None if it was not asked for.
    """

    logp: Tensor
    normalizer: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor
    slope: Tensor | None


class Sent(NamedTuple):
    """The places that a gradient reached, in a row.

    Attributes:
        places: With N as their only leading axis.
        by_logp: [N], what reached their log-probabilities: c.
        by_entropy: [N], what reached their entropies: e; None if that is 0 everywhere.
    """

    places: Places
    by_logp: Tensor
    by_entropy: Tensor | None

    def some(self, part: slice) -> Sent:
        """A stretch of them."""
        by_entropy = None if self.by_entropy is None else self.by_entropy[part]
        return Sent(Places(*(each[part] for each in self.places)), self.by_logp[part], by_entropy)


def sent_to(places: Places, gradient: Tensor) -> tuple[Sent, Tensor]:
    """Leave out the places that no gradient reached.

    Args:
        places: With leading axes [...].
        gradient: [..., 2], what reached log-probabilities and entropies.

    Returns:
        The others, and bool [...], which they are.
    """
    counted = (gradient != 0).any(-1)
    by_logp, by_entropy = gradient[counted].unbind(-1)
    kept = Places(*(each[counted] for each in places))
    return Sent(kept, by_logp, by_entropy if bool(by_entropy.any()) else None), counted


class Vocabulary:
    """A linear head and how it is gone through.

    Args:
        head: Has a weight [V, H] and a bias [V] or None.
        dtype: What products with the weight are computed in; all else is in float32, or float64 if this is.
        chunk_bytes: Size of the logits that exist at once.
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

    def blocks(self, numbers: int) -> list[slice]:
        """Ranges of tokens: `numbers` numbers for each token of a range take at most `chunk_bytes`."""
        return slices(self.weight.shape[0], self.chunk_bytes // (self.exact.itemsize * max(1, numbers)))

    def stretches(self, sent: Sent, numbers: int) -> list[Sent]:
        """The places in pieces: `numbers` numbers for each place of a piece take at most `chunk_bytes`."""
        size = self.chunk_bytes // (self.exact.itemsize * max(1, numbers))
        return [sent.some(part) for part in slices(len(sent.by_logp), size)]

    @torch.no_grad()
    def read(self, hidden: Tensor, targets: Tensor, slopes: bool) -> Reading:
        """Statistics of places [N, H] and their targets [N], a few places at a time with the whole vocabulary.

        The slope of a log-probability, W_y - sum_v p_v W_v, is found on the way, so that a backward need not come back:
        two products in all, where logits that are computed again make it three.
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
        return Reading(logp, normalizer, entropy, squares, slope)

    def by_logit(self, sent: Sent, block: slice) -> Tensor:
        """[N, v] gradient by the logits of a range of v tokens."""
        found = self._elsewhere(sent, block)
        column = sent.places.targets - block.start
        inside = (column >= 0) & (column < found.shape[1])
        column = column.clamp(0, found.shape[1] - 1).unsqueeze(1)
        chosen = torch.where(inside, _at_target(sent), found.gather(1, column).squeeze(1))
        return found.scatter_(1, column, chosen.unsqueeze(1))

    def by_logit_of(self, sent: Sent, ids: Tensor) -> Tensor:
        """[N, U] gradient by the logits of tokens int64 [U], in any order."""
        here = sent.places.targets.unsqueeze(1) == ids
        return torch.where(here, _at_target(sent).unsqueeze(1), self._elsewhere(sent, ids))

    def to_hidden(self, sent: Sent) -> Tensor:
        """[N, H] gradient by what the head read."""
        total = torch.zeros_like(sent.places.hidden, dtype=self.exact)
        for block in self.blocks(len(total)):
            total += _product(self.by_logit(sent, block).to(self.dtype), self.weight[block].to(self.dtype))
        return total

    def to_head(self, sent: Sent, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """[V, H] and [V], gradient by weight and bias; its products are computed in `dtype`."""
        read = sent.places.hidden.to(self.dtype).to(dtype)
        to_weight = torch.empty_like(self.weight, dtype=self.exact)
        to_bias = to_weight.new_empty(len(to_weight))
        for block in self.blocks(max(read.shape)):
            found = self.by_logit(sent, block)
            to_weight[block] = _product(found.t().to(dtype), read)
            to_bias[block] = found.sum(0)
        return to_weight, to_bias

    def _elsewhere(self, sent: Sent, columns: slice | Tensor) -> Tensor:
        """[N, v] gradient by the logits of some tokens, for places whose target is another one."""
        weight, bias, places = self.weight[columns].to(self.dtype), self.bias, sent.places
        log_p = _logits(places.hidden, weight, None if bias is None else bias[columns])
        log_p.sub_(places.normalizer.unsqueeze(1))
        if sent.by_entropy is None:
            return log_p.exp_().mul_(-sent.by_logp.unsqueeze(1))
        factor = (log_p + places.entropy.unsqueeze(1)).mul_(sent.by_entropy.unsqueeze(1))
        return log_p.exp_().mul_(factor.add_(sent.by_logp.unsqueeze(1))).neg_()


def slices(count: int, size: int) -> list[slice]:
    """The range of `count` numbers in pieces of `size`, or of 1."""
    size = max(1, size)
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def _statistics(logits: Tensor, targets: Tensor, numbers: Tensor) -> Tensor:
    """Fill the first four of `Reading` into `numbers` [4, n]; the probabilities [n, V]. `logits` [n, V] are used up."""
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


def _at_target(sent: Sent) -> Tensor:
    """[N] gradient by the logit of the target itself."""
    logp = sent.places.logp
    found = -sent.by_logp * logp.expm1()
    return found if sent.by_entropy is None else found - sent.by_entropy * logp.exp() * (logp + sent.places.entropy)


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """[n, v] in float32 at least."""
    logits = working(_product(hidden.to(weight.dtype), weight.t()))
    return logits if bias is None else logits.add_(bias)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """In the type of both, also inside an autocast region."""
    with torch.autocast(left.device.type, enabled=False):
        return left @ right
