"""Gradients of a group that spans several micro-batches, whose baseline is known only after the last of them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.norms import ScoreNorms


class GradientSums:
    """Weighted sums of score gradients, accumulated over micro-batches until their coefficients are known.

    With the norm-weighted baseline b of a group, the coefficient of a trajectory is k w_i (R_i - b), and b is known
    only after the last micro-batch of the group. Two sums suffice (VCPO, Algorithm 1): sum_i w_i R_i s_i and sum_i
    w_i s_i; `assemble` puts the first minus b times the second into `.grad`.
    """

    def __init__(self, count: int = 2) -> None:
        self._sums: list[dict[nn.Parameter, Tensor]] = [{} for _ in range(count)]

    def add(self, norms: ScoreNorms, *weights: Tensor) -> None:
        """Add a recorded micro-batch.

        Args:
            norms: Must have just computed the squared norms of the micro-batch.
            weights: [B], one tensor for each sum.
        """
        for total, each in zip(self._sums, weights, strict=True):
            for parameter, gradient in norms.gradient(each).items():
                total[parameter] = total[parameter].add_(gradient) if parameter in total else gradient

    @torch.no_grad()
    def assemble(self, factors: Sequence[Tensor | float]) -> None:
        """Add the gradient of the loss, minus the sum over k of factors[k] times sum k, to `.grad`; reset the sums."""
        for k, factor in enumerate(factors):
            for parameter, total in self._sums[k].items():
                share = -factor * total
                parameter.grad = share if parameter.grad is None else parameter.grad.add_(share)
            self._sums[k] = {}
