"""The learner of one process: it scores its share of the trajectories, and steps its shard of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.bench.feeding.source import under
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import refill
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.score_norms.sharded import ShardedScoreNorms
from vcpo_bench.bench.sharding.gradient import ShardedGradient, joined, local, shared
from vcpo_bench.bench.sharding.layout import rest, shard
from vcpo_bench.bench.sharding.ranks import Ranks
from vcpo_bench.bench.sharding.sampling import SharedLoop
from vcpo_bench.bench.sharding.shares import own_pieces
from vcpo_bench.bench.sharding.state import load_sharded, whole_state
from vcpo_bench.bench.training.learner import Learner, Scored
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.micro_batches import Piece
from vcpo_bench.bench.trajectories import Responses, Trajectories
from vcpo_bench.methods import Method, Update


class ShardedLearner(Learner):
    """Applies one method to one policy whose parameters, gradients and optimizer are spread over processes by FSDP2.

    Every process runs it on the same batches. Evidence is gathered, so that each asks the method the same question
    and gets the same answer; only forward and backward passes and the step are divided.

    Args:
        policy: A language model with whole parameters, the same in every process; sharded from here on.
        method: See `Learner`.
        settings: See `Learner`.
        ranks: The processes.

    Raises:
        UsageError: The model cannot be sharded.
        InexactError: Exact score norms of its sharded parameters are impossible.
    """

    score_norms: ClassVar[type[ScoreNorms]] = ShardedScoreNorms

    def __init__(self, policy: CausalPolicy, method: Method, settings: LearnerSettings, *, ranks: Ranks) -> None:
        super().__init__(policy, method, settings)
        self.ranks = ranks
        inspected = dict(policy.named_parameters())
        measuring = [one for one in (self._norms, self._recorded_norms) if isinstance(one, ShardedScoreNorms)]
        for norms in measuring:
            self._prove(norms, policy)
        for each in (policy, self.reference):
            if isinstance(each, CausalPolicy):
                shard(each, ranks.mesh)
        replaced = {inspected[name]: parameter for name, parameter in policy.named_parameters()}
        for norms in measuring:
            norms.follow(replaced)
        policy.sampling = replace(policy.sampling, loop=SharedLoop(policy.sampling.loop or refill, ranks))
        self.optimizer = settings.optimizer.build(policy, settings.lr, settings.weight_decay)

    def tensors(self) -> dict[str, Tensor]:
        """See `Learner.tensors`, under the same names: whole tensors in process 0, which writes; in others, few."""
        rest(self.policy)
        found = whole_state(self.policy, self.optimizer)
        found |= {f"method/{name}": tensor for name, tensor in self.method_state.items()}
        if self.previous_gradient is not None:
            found["previous_gradient"] = joined(self.previous_gradient, self.policy.trainable())
        return found

    def load(self, tensors: dict[str, Tensor], same_method: bool) -> None:
        """See `Learner.load`; processes other than 0 need no large tensors."""
        rest(self.policy)
        load_sharded(self.policy, self.optimizer, tensors, self.ranks.number == 0)
        if same_method:
            self.method_state = under(tensors, "method/")
        kept = tensors.get("previous_gradient")
        if int(self.ranks.total(torch.tensor(int(kept is not None)))):
            self.previous_gradient = shared(kept, self.policy.trainable())

    def observe_gradient(self) -> dict[str, float]:
        """See `Learner.observe_gradient`."""
        rest(self.policy)
        return super().observe_gradient()

    def _prove(self, norms: ShardedScoreNorms, policy: CausalPolicy) -> None:
        """Let process 0 check the model, with its head at once and in chunks, and tell the others."""
        if self.ranks.number == 0:
            for chunked in (False, True):
                norms.prove(partial(_small_batch, policy, chunked))
        proven = self.ranks.number == 0 and norms.suffice
        norms.suffice = bool(self.ranks.total(torch.tensor(int(proven))))

    def _cut(self, batch: Trajectories) -> list[Piece]:
        return own_pieces(batch, self.ranks.number, self.ranks.count, self.settings.micro_tokens)

    def _gather(self, pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
        rows = torch.cat([piece.rows for piece in pieces if isinstance(piece.rows, Tensor)])
        together = self.ranks.gather(torch.cat([value.detach() for value in values]).cpu())
        ordered = torch.empty_like(together)
        ordered[self.ranks.gather(rows)] = together
        return ordered

    def _constant(self, coefficients: Tensor, mask: Tensor) -> Tensor | None:
        row = super()._constant(coefficients, mask)
        return row if self.ranks.agree(row is not None) else None  # the other way communicates: all take it, or none

    def _backward(self, scored: Scored, update: Update) -> None:
        super()._backward(scored, update)
        rest(self.policy)

    def _gradient(self) -> ShardedGradient:
        return ShardedGradient(self.policy, self.policy.output_head(), self.previous_gradient, self.ranks)

    @torch.no_grad()
    def _replace_gradient(self, gradient: Tensor, previous: Tensor, a: float, b: float) -> None:
        if (a, b) == (0.0, 0.0):
            self.optimizer.zero_grad(set_to_none=True)
            return
        own = [local(p.grad) for p in self.policy.parameters() if p.grad is not None]
        mixed = torch.split(a * gradient + b * previous, [one.numel() for one in own])
        for one, piece in zip(own, mixed, strict=True):
            one.copy_(piece.view_as(one))


def _small_batch(policy: CausalPolicy, chunked: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities `[3, 4]` of some trajectories of different lengths, and their mask."""
    vocabulary = policy.chunked_head.vocabulary
    tokens = torch.arange(1, 25).view(3, 8) % len(vocabulary.weight)
    mask = torch.arange(4) < torch.tensor([[4], [3], [2]])
    usual = vocabulary.chunk_bytes
    try:
        if chunked:
            vocabulary.chunk_bytes = 1
        scores = policy.score_rows(Responses(tokens[:, :4], tokens[:, 4:], mask))
    finally:
        vocabulary.chunk_bytes = usual
    return scores.logp, scores.mask
