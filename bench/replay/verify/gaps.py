"""How far reported log-probabilities are from those that weights give the same tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.replay.verify.findings import Gaps

_ROWS = 64
"""Trajectories scored at once."""


def gaps_under(
    policy: Policy,
    prompts: Tensor,
    responses: Tensor,
    reported: Tensor,
    counted: Tensor,
    mask: Tensor,
    kept: Tensor | None = None,
) -> Gaps:
    """Root mean square, over the counted tokens of each trajectory, of reported minus recomputed log-probability.

    Args:
        policy: Holds the weights.
        prompts: int64 [B, Lp].
        responses: int64 [B, T].
        reported: float32 [B, T] log-probabilities that the sampler reported.
        counted: bool [B, T], at least one True per row.
        mask: bool [B, T], tokens that the policy drew.
        kept: uint8 [B, T, ceil(V / 8)] surviving tokens, under mask replay.

    Returns:
        [B] in nats per token.
    """
    found = []
    for begin in range(0, len(responses), _ROWS):
        part = slice(begin, begin + _ROWS)
        sets = None if kept is None else kept[part]
        with torch.no_grad():
            logp = policy.score(prompts[part], responses[part], mask[part], sets).logp.cpu()
        squares = torch.where(counted[part], reported[part].double() - logp.double(), 0.0).square().sum(1)
        found.append((squares / counted[part].sum(1)).sqrt().numpy())
    return np.concatenate(found)
