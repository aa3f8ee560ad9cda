"""Truncated sampling: top-p and top-k, which tokens survive, and those sets as bits for the learner to replay."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.lazy_torch import Tensor, torch

FLOOR = -1e30
"""Logit of a token that was cut: its probability is exactly 0, and 0 times its logarithm is 0 instead of NaN."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """How a sampler cuts the distribution of each token before it draws. First top-k, then top-p of what is left.

    Attributes:
        top_p: Probability mass kept: the fewest most likely tokens that reach it; 1: all.
        top_k: Tokens kept, more where they tie with the last one; 0: all.
        replay: Record which tokens survived, so that the learner normalizes over the same set.
    """

    top_p: float = 1.0
    top_k: int = 0
    replay: bool = False

    def survivors(self, logits: Tensor, dim: int) -> Tensor:
        """Which tokens survive, bool in the shape of `logits`.

        Args:
            logits: Unnormalized log-probabilities.
            dim: The dimension of the vocabulary.
        """
        kept = torch.ones_like(logits, dtype=torch.bool)
        if self.top_k:
            count = min(self.top_k, logits.shape[dim])
            kept = logits >= logits.topk(count, dim).values.narrow(dim, count - 1, 1)
        if self.top_p < 1:
            values, order = cut(logits, kept).sort(dim=dim, descending=True, stable=True)
            p = values.softmax(dim)
            kept = kept & torch.zeros_like(kept).scatter(dim, order, p.cumsum(dim) - p < self.top_p)
        return kept

    def apply(self, logits: Tensor, dim: int) -> Tensor:
        """The logits with those of all other tokens at `FLOOR`; the same tensor where nothing is cut."""
        if not self.top_k and self.top_p >= 1:
            return logits
        return cut(logits, self.survivors(logits, dim))


def cut(logits: Tensor, kept: Tensor) -> Tensor:
    """Logits with those outside a set of tokens, bool in a shape that broadcasts, at `FLOOR`."""
    return logits.masked_fill(~kept, FLOOR)


def packed_size(vocabulary: int) -> int:
    """Bytes that a set of tokens takes, one bit per token of the vocabulary."""
    return -(-vocabulary // 8)


def pack(kept: Tensor) -> Tensor:
    """Sets of tokens as bits, bool [..., V] to uint8 [..., ceil(V / 8)]; token v is bit v % 8 of byte v // 8."""
    vocabulary = kept.shape[-1]
    size = packed_size(vocabulary)
    padded = torch.nn.functional.pad(kept.to(torch.uint8), (0, 8 * size - vocabulary)).contiguous()
    bits = padded.view(*kept.shape[:-1], size, 8) << _places(kept.device)
    packed: Tensor = bits.sum(-1, dtype=torch.uint8)
    return packed


def unpack(packed: Tensor, vocabulary: int) -> Tensor:
    """What `pack` packed: bool [..., V]."""
    bits = (packed.unsqueeze(-1) >> _places(packed.device)) & 1
    return bits.flatten(-2)[..., :vocabulary].bool()


def _places(device: torch.device) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=device)
