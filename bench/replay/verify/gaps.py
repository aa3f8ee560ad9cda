"""How far reported log-probabilities are from those that weights give the same tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.replay.verify.findings import Gaps
from vcpo_bench.bench.trajectories import Responses

_ROWS = 64
"""Trajectories scored at once."""


def gaps_under(policy: Policy, given: Responses, reported: Tensor, counted: Tensor) -> Gaps:
    """Root mean square, over the counted tokens of each trajectory, of reported minus recomputed log-probability.

    Args:
        policy: Holds the weights.
        given: The trajectories, with a prompt for each; the mask is True at tokens that the policy drew.
        reported: float32 [B, T] log-probabilities that the sampler reported.
        counted: bool [B, T], at least one True per row.

    Returns:
        [B] in nats per token.
    """
    found = []
    for begin in range(0, len(reported), _ROWS):
        part = slice(begin, begin + _ROWS)
        with torch.no_grad():
            logp = policy.score(given.take(part)).logp.cpu()
        squares = torch.where(counted[part], reported[part].double() - logp.double(), 0.0).square().sum(1)
        found.append((squares / counted[part].sum(1)).sqrt().numpy())
    return np.concatenate(found)
