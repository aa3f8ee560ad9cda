"""Log-probabilities of responses under a policy, with gradients, and the statistics that some methods ask for."""

from __future__ import annotations

import torch
from torch import Tensor

from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.policies.tiny.network import Transformer
from vcpo_bench.bench.policies.truncation import cut, unpack


def score(
    network: Transformer, prompts: Tensor, responses: Tensor, mask: Tensor, kept: Tensor | None = None
) -> DenseScores:
    """Score responses with the tiny network; see `Policy.score`.

    With one prompt per response row the whole sequences go through the network and each module is called once, with one
    trajectory per row (what hooks for per-trajectory gradients need). With fewer prompts, each is computed once for its
    group, which is faster and equal up to rounding.

    Args:
        network: Gradients reach it through the result unless gradients are off.
        prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
        responses: int64 [B, T].
        mask: bool [B, T], True where the token carries loss.
        kept: uint8 [B, T, ceil(V / 8)], tokens over which each distribution is normalized; None: all.

    Returns:
        The scores; rows in the order given.
    """
    B, device = len(responses), network.device
    prompts, responses, mask = prompts.to(device), responses.to(device), mask.to(device)
    P, Lp = prompts.shape
    last = prompts[:, -1:].repeat_interleave(B // P, 0)
    inputs = torch.cat([last, responses[:, :-1]], dim=1)
    if P == B:
        hidden = network.hidden(torch.cat([prompts[:, :-1], inputs], dim=1), first=Lp - 1)
    else:
        hidden = network.hidden_after(prompts[:, :-1], inputs)
    # tokens first: PyTorch's softmax over a short last dimension is not vectorized
    logits = network.head(hidden).permute(2, 0, 1).contiguous()
    if kept is not None:
        logits = cut(logits, unpack(kept.to(device), len(logits)).permute(2, 0, 1))
    distribution = logits.log_softmax(0)
    logp = distribution.gather(0, responses.unsqueeze(0)).squeeze(0)
    return DenseScores(torch.where(mask, logp, 0.0), distribution, mask)
