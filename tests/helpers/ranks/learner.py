"""A data-parallel learner: each rank scores and differentiates its own prompts; all apply the same update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from ranks.ranks import Ranks
from vcpo_bench.bench.training.learner import Learner, Scored
from vcpo_bench.bench.training.micro_batches import Piece
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Update


class ParallelLearner(Learner):
    """Applies one method to one policy on several ranks.

    Every rank receives the whole batch and scores its own prompts. The small tensors are gathered, so that each rank
    computes the same coefficients from the same evidence; gradients are summed. Weights, optimizer and method state
    stay the same on all ranks.

    Args:
        ranks: This process among the others.
        arguments: Arguments of `Learner`.
    """

    def __init__(self, ranks: Ranks, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ranks = ranks

    def _cut(self, batch: Trajectories) -> list[Piece]:
        return super()._cut(batch.split(self.ranks.count)[self.ranks.rank])

    def _gather(self, pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
        return self.ranks.gather(super()._gather(pieces, values))

    def _backward(self, scored: Scored, update: Update) -> None:
        entropy = update.entropy_coefficients
        own = replace(
            update,
            coefficients=self._own(update.coefficients),
            entropy_coefficients=None if entropy is None else self._own(entropy),
        )
        super()._backward(scored, own)
        self.ranks.sum_gradients(self.policy.trainable())

    def _own(self, prompts: Tensor) -> Tensor:
        return prompts.tensor_split(self.ranks.count)[self.ranks.rank]
