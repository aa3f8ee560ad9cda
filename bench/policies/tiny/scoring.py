"""Log-probabilities of responses under a policy, with gradients, and the statistics that some methods ask for."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.policies.tiny.network import Transformer
from vcpo_bench.bench.policies.truncation import cut, unpack
from vcpo_bench.bench.trajectories import Responses


def score(network: Transformer, given: Responses) -> DenseScores:
    """Score responses with the tiny network; see `Policy.score`.

    With one prompt per response row the whole sequences go through the network and each module is called once, with one
    trajectory per row (what hooks for per-trajectory gradients need). With fewer prompts, each is computed once for its
    group, which is faster and equal up to rounding.

    Args:
        network: Gradients reach it through the result unless gradients are off.
        given: The responses.

    Returns:
        The scores; rows in the order given.
    """
    given = given.to(network.device)
    prompts, B = given.prompts, len(given.responses)
    P, Lp = prompts.shape
    last = prompts[:, -1:].repeat_interleave(B // P, 0)
    inputs = torch.cat([last, given.responses[:, :-1]], dim=1)
    if P == B:
        hidden = network.hidden(torch.cat([prompts[:, :-1], inputs], dim=1), first=Lp - 1)
    else:
        hidden = network.hidden_after(prompts[:, :-1], inputs)
    return dense_scores(network.head, hidden, given)


def dense_scores(head: nn.Linear, hidden: Tensor, given: Responses) -> DenseScores:
    """Scores of responses from what the head reads, [B, T, width], and all logits at once."""
    # tokens first: PyTorch's softmax over a short last dimension is not vectorized
    logits = head(hidden).permute(2, 0, 1).contiguous()
    if given.kept is not None:
        logits = cut(logits, unpack(given.kept, len(logits)).permute(2, 0, 1))
    distribution = logits.log_softmax(0)
    logp = distribution.gather(0, given.responses.unsqueeze(0)).squeeze(0)
    return DenseScores(torch.where(given.mask, logp, 0.0), distribution, given.mask)
