"""More statistics from the same pass: inner products of trajectory gradients, and the noise of their weighted sum."""

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.norms import ScoreNorms
from vcpo_bench.bench.score_norms.rules import at_least_float32


@torch.no_grad()
def inner_products(norms: ScoreNorms, groups: Tensor | None = None) -> Tensor:
    """<s_i, s_j> of the score gradients of the last batch's trajectories.

    Args:
        norms: Must have just computed the squared norms of a batch, without `retain_graph`.
        groups: int64 [B], the group of each trajectory; None: all are one group.

    Returns:
        [B, B]; 0 between different groups. The diagonal is the squared norms.

    Raises:
        InexactError: Nothing is kept.
    """
    total: Tensor = torch.stack([contribution.inner() for contribution in norms.contributions()]).sum(0)
    return total if groups is None else torch.where(groups[:, None] == groups, total, 0.0)


@torch.no_grad()
def noise_to_signal(norms: ScoreNorms, weights: Tensor) -> Tensor:
    """Estimated variance of the update direction g = sum_i weights[i] s_i, in units of ||g||^2.

    Each trajectory counts as an independent sample N weights[i] s_i of g. The trace of the covariance of g is then
    estimated by (N sum_i weights[i]^2 ||s_i||^2 - ||g||^2) / (N - 1), which needs only the norms and the sum. The
    inverse is the signal-to-noise ratio; the "norm test" of adaptive batch sizes compares its root with a threshold.

    Args:
        norms: Must have just computed the squared norms of a batch, without `retain_graph`.
        weights: [B].

    Returns:
        A scalar, 0 if all trajectories agree, inf where g is 0, nan with fewer than 2 trajectories.

    Raises:
        InexactError: Nothing is kept.
    """
    weights = at_least_float32(weights)
    N = len(weights)
    squares = torch.stack(list(norms.layers().values())).sum(0)
    signal = torch.stack([gradient.square().sum() for gradient in norms.gradient(weights).values()]).sum()
    noise = (N * (weights.square() * squares).sum() - signal) / (N - 1) if N > 1 else signal * torch.nan
    return noise / signal
