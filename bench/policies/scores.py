"""What a policy says about given tokens, from all logits at once or from a chunked head.

Everything is on the policy's device, and exactly 0 for tokens outside the mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class DenseScores:
    """Scores from the whole distribution at every position: for small vocabularies.

    Attributes:
        logp: [B, T] log-probability of each response token, differentiable.
        distribution: [V, B, T] log-probability of every token at each position, differentiable (not masked).
        mask: bool [B, T], True where a token carries loss.
    """

    logp: Tensor
    distribution: Tensor
    mask: Tensor

    @cached_property
    def entropy(self) -> Tensor:
        """[B, T] entropy of the distribution each token was drawn from, in nats; without gradient."""
        with torch.no_grad():
            return self.differentiable_entropy()

    @cached_property
    def sum_pi_sq(self) -> Tensor:
        """[B, T] sum over the vocabulary of squared probabilities (1 minus Gini-Simpson); without gradient."""
        with torch.no_grad():
            squares: Tensor = (2 * self.distribution).exp().sum(0)
            return torch.where(self.mask, squares, 0.0)

    def differentiable_entropy(self) -> Tensor:
        """[B, T] the entropy again, with gradient: for entropy bonuses."""
        entropy: Tensor = -(self.distribution.exp() * self.distribution).sum(0)
        return torch.where(self.mask, entropy, 0.0)


@dataclass(frozen=True)
class ChunkedScores:
    """Scores from a head computed in vocabulary chunks, which never held all logits.

    Attributes:
        logp: [B, T] log-probabilities, differentiable.
        mask: bool [B, T].
        entropies: [B, T] entropies in nats, differentiable.
        sum_pi_sq: [B, T] sums of squared probabilities.
    """

    logp: Tensor
    mask: Tensor
    entropies: Tensor
    sum_pi_sq: Tensor

    @property
    def entropy(self) -> Tensor:
        """See `DenseScores.entropy`."""
        return self.entropies.detach()

    def differentiable_entropy(self) -> Tensor:
        """See `DenseScores.differentiable_entropy`."""
        return self.entropies


TokenScores = DenseScores | ChunkedScores
"""Statistics of given responses."""
