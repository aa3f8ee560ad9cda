"""Log-probabilities of the responses of E cells under the policy of each, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.trajectories import Responses


@dataclass(frozen=True)
class StackedScores:
    """What E policies say about given responses.

    Attributes:
        logp: `[E, B, T]` log-probability of each response token, differentiable.
        distribution: `[E, V, B, T]` log-probability of every token at each position, differentiable (not masked).
        mask: Bool `[E, B, T]`, True where a token carries loss.
    """

    logp: Tensor
    distribution: Tensor
    mask: Tensor

    @torch.no_grad()
    def entropy(self) -> Tensor:
        """`[E, B, T]` entropy of the distribution each token was drawn from, in nats; without gradient."""
        return self.differentiable_entropy(range(len(self.logp)))

    @torch.no_grad()
    def sum_pi_sq(self) -> Tensor:
        """`[E, B, T]` sum over the vocabulary of squared probabilities; without gradient."""
        return torch.where(self.mask, (2 * self.distribution).exp().sum(1), 0.0)

    def differentiable_entropy(self, cells: Sequence[int]) -> Tensor:
        """`[n, B, T]` the entropy of n cells with gradient, which does not reach the others."""
        distribution, mask = self.distribution, self.mask
        if len(cells) < len(mask):
            index = torch.tensor(list(cells), device=mask.device)
            distribution, mask = distribution.index_select(0, index), mask[index]
        return torch.where(mask, -(distribution.exp() * distribution).sum(1), 0.0)


def score(network: StackedNetwork, given: Responses) -> StackedScores:
    """Score the responses of every cell; see `policies.tiny.scoring.score`.

    Args:
        network: The policies; gradients reach their weights unless gradients are off.
        given: The responses, all tensors with a leading axis of cells: prompts `[E, P, Lp]`, responses and mask
            `[E, B, T]`, P dividing B.
    """
    given = given.to(network.device)
    prompts, B = given.prompts, given.responses.shape[1]
    P = prompts.shape[1]
    last = prompts[:, :, -1:].repeat_interleave(B // P, 1)
    inputs = torch.cat([last, given.responses[:, :, :-1]], dim=2)
    if P == B:
        hidden = network.hidden(torch.cat([prompts[:, :, :-1], inputs], dim=2), first=prompts.shape[2] - 1)
    else:
        hidden = network.hidden_after(prompts[:, :, :-1], inputs)
    distribution = network.linear("head", hidden).permute(0, 3, 1, 2).contiguous().log_softmax(1)
    logp = distribution.gather(1, given.responses.unsqueeze(1)).squeeze(1)
    return StackedScores(torch.where(given.mask, logp, 0.0), distribution, given.mask)
