"""The updates of several methods at the same weights: one forward pass for all, one backward pass for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.training.backward import terms_of_loss
from vcpo_bench.bench.training.evidence import evidence_of
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update


class MethodUpdates(NamedTuple):
    """Updates of one method on n batches.

    Attributes:
        gradients: `[n, D]` float32 in main memory, of the loss, before clipping; D counts trained parameters.
        scales: `[n]` its multipliers of the learning rate.
    """

    gradients: Tensor
    scales: NDArray[np.float64]


class Estimators:
    """Methods that see the same evidence at fixed weights.

    Args:
        policy: theta_t; only read, and not copied: memory may hold a language model only once.
        methods: Methods to measure; none may act on the gradient itself.
        reference: Opens the frozen reference policy, for methods that need one.
        states: State of a method from the run so far, by its canonical expression.
        micro_tokens: Largest number of positions per forward pass, as for the learner; 0: no limit. With a limit, each
            batch is scored twice, since the graphs of all its pieces are not kept.
    """

    def __init__(
        self,
        policy: Policy,
        methods: Sequence[Method],
        reference: Callable[[], Policy] | None = None,
        states: Mapping[str, Mapping[str, Tensor]] | None = None,
        micro_tokens: int = 0,
    ) -> None:
        self.policy, self.methods, self.states, self.micro_tokens = policy, methods, states or {}, micro_tokens
        self.needs: frozenset[str] = frozenset().union(*(method.needs for method in methods))
        self.parameters = policy.trainable()
        self._reference: Policy | None = None
        if "reference_logp" in self.needs and reference is not None:
            self._reference = reference().requires_grad_(False)

    def updates(self, batches: Sequence[Trajectories], now: int) -> list[MethodUpdates]:
        """The update of each batch on its own, for every method; 0 where training would skip it.

        Args:
            batches: Batches of one behavior policy.
            now: Updates applied before this one.
        """
        size = sum(parameter.numel() for parameter in self.parameters)
        found = [MethodUpdates(torch.zeros(len(batches), size), np.zeros(len(batches))) for _ in self.methods]
        with self._recording() as norms:
            for i, batch in enumerate(batches):
                scales = self._add_updates(batch, now, norms, [one.gradients[i] for one in found])
                for one, scale in zip(found, scales, strict=True):
                    one.scales[i] = scale
        return found

    def _add_updates(
        self, batch: Trajectories, now: int, norms: ScoreNorms | None, rows: Sequence[Tensor]
    ) -> list[float]:
        """Add each method's gradient of a batch to its row `[D]`; returns the step scales and frees the graph."""
        pieces = cut(batch, tokens=self.micro_tokens)
        evidence, scores = self._evidence(batch, now, pieces, norms)
        answers = [self._answer(method, evidence) for method in self.methods]
        pairs = [(answer, row) for answer, row in zip(answers, rows, strict=True) if answer is not None]
        for piece, known in zip(pieces, scores, strict=True):
            scored = known if len(pieces) == 1 else self.policy.score(piece.part.flat())
            self._add_gradients(piece, scored, pairs)
            del scored  # before the next piece makes a graph
        return [_scale(answer, row) for answer, row in zip(answers, rows, strict=True)]

    def _recording(self) -> AbstractContextManager[ScoreNorms | None]:
        return closing(ScoreNorms(self.policy)) if "score_norm_sq" in self.needs else nullcontext()

    def _answer(self, method: Method, evidence: Batch) -> Update | None:
        """A method's update on a batch; None if training would skip it."""
        try:
            update = method(evidence.with_state(self.states.get(method.canonical, {})))
        except NonFiniteEvidence:
            return None
        return update if math.isfinite(float(update.step_scale)) else None

    def _evidence(
        self, batch: Trajectories, now: int, pieces: Sequence[Piece], norms: ScoreNorms | None
    ) -> tuple[Batch, list[TokenScores]]:
        """The evidence, and the scores of each piece; with their graph if there is only one."""
        squared = None if norms is None else self._score_norms(pieces, norms)
        with torch.set_grad_enabled(len(pieces) == 1):
            scores = [self.policy.score(piece.part.flat()) for piece in pieces]
        evidence = evidence_of(
            batch,
            now,
            scores,
            gather=lambda values: gather(pieces, values),
            needs=self.needs,
            score_norm_sq=squared,
            reference_logp=self._reference_logp(pieces) if self._reference else None,
        )
        return evidence, scores

    def _score_norms(self, pieces: Sequence[Piece], norms: ScoreNorms) -> Tensor:
        """`[rows]` squared score norms, from forward passes with one trajectory per row."""
        squared = []
        for part, _ in pieces:
            with norms.record():
                scores = self.policy.score_rows(part.flat().each)
            squared.append(norms.squared_norms(scores.logp, scores.mask))
            norms.release()
        return gather(pieces, squared)

    def _reference_logp(self, pieces: Sequence[Piece]) -> Tensor:
        assert self._reference is not None
        with torch.no_grad():
            return gather(pieces, [self._reference.score(piece.part.flat()).logp for piece in pieces])

    def _add_gradients(self, piece: Piece, scored: TokenScores, updates: Sequence[tuple[Update, Tensor]]) -> None:
        """Add the gradient of the loss to the row `[D]` of each update."""
        sizes = [parameter.numel() for parameter in self.parameters]
        for update, row in updates:
            outputs, weights = terms_of_loss(scored, update, piece.rows)
            found = torch.autograd.grad(outputs, self.parameters, weights, retain_graph=True, allow_unused=True)
            for part, gradient in zip(torch.split(row, sizes), found, strict=True):
                if gradient is not None:
                    part.add_(gradient.flatten().to(part.device))


def _scale(answer: Update | None, row: Tensor) -> float:
    """A method's step scale; 0, and the row too, if training would skip the batch."""
    if answer is None or not bool(torch.isfinite(row).all()):
        row.zero_()
        return 0.0
    return float(answer.step_scale)
