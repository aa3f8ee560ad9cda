"""Log-probabilities of responses under a policy, with gradients, and the statistics that some methods ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.tiny.policy import Policy


@dataclass(frozen=True)
class DenseScores:
    """`model.Scores` from the whole distribution at every place: for small vocabularies.

    Attributes:
        logp: [B, T] log-probability of each response token, differentiable.
        distribution: [V, B, T] log-probability of every token at each place, differentiable (not masked).
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


def score(policy: Policy, prompts: Tensor, responses: Tensor, mask: Tensor) -> DenseScores:
    """What `Policy.score` does.

    With one prompt per response row the whole sequences go through the policy and each module is called once, with one
    trajectory per row (what hooks for per-trajectory gradients need). With fewer prompts, each is computed once for its
    group, which is faster and equal up to rounding.

    Args:
        policy: The policy; gradients reach it through the result unless gradients are off.
        prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
        responses: int64 [B, T].
        mask: bool [B, T], True where the token carries loss.

    Returns:
        The scores; rows in the order given.
    """
    B, device = len(responses), policy.device
    prompts, responses, mask = prompts.to(device), responses.to(device), mask.to(device)
    P, Lp = prompts.shape
    last = prompts[:, -1:].repeat_interleave(B // P, 0)
    inputs = torch.cat([last, responses[:, :-1]], dim=1)
    if P == B:
        hidden = policy.hidden(torch.cat([prompts[:, :-1], inputs], dim=1), first=Lp - 1)
    else:
        hidden = policy.hidden_after(prompts[:, :-1], inputs)
    # tokens first: PyTorch's softmax over a short last dimension is not vectorized
    distribution = policy.head(hidden).permute(2, 0, 1).contiguous().log_softmax(0)
    logp = distribution.gather(0, responses.unsqueeze(0)).squeeze(0)
    return DenseScores(torch.where(mask, logp, 0.0), distribution, mask)
