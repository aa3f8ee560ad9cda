"""Log-probabilities of the responses of E cells under the policy of each, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.stack.network import StackedNetwork


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


def score(network: StackedNetwork, prompts: Tensor, responses: Tensor, mask: Tensor) -> StackedScores:
    """Score the responses of every cell; see `policies.tiny.scoring.score`.

    Args:
        network: The policies; gradients reach their weights unless gradients are off.
        prompts: int64 `[E, P, Lp]`, P dividing B: the responses of one prompt are consecutive.
        responses: int64 `[E, B, T]`.
        mask: Bool `[E, B, T]`, True where a token carries loss.
    """
    device = network.device
    prompts, responses, mask = prompts.to(device), responses.to(device), mask.to(device)
    P, B = prompts.shape[1], responses.shape[1]
    last = prompts[:, :, -1:].repeat_interleave(B // P, 1)
    inputs = torch.cat([last, responses[:, :, :-1]], dim=2)
    if P == B:
        hidden = network.hidden(torch.cat([prompts[:, :, :-1], inputs], dim=2), first=prompts.shape[2] - 1)
    else:
        hidden = network.hidden_after(prompts[:, :, :-1], inputs)
    distribution = network.linear("head", hidden).permute(0, 3, 1, 2).contiguous().log_softmax(1)
    logp = distribution.gather(1, responses.unsqueeze(1)).squeeze(1)
    return StackedScores(torch.where(mask, logp, 0.0), distribution, mask)
