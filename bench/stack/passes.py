"""The passes of E learners through their networks: forward to scores, and backward from the methods' answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.stack.answers import Answer
from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.stack.norms import StackedNorms
from vcpo_bench.bench.stack.scoring import StackedScores, score
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.backward import backward_through, constant_rows, send_backward
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.methods import Update


class PlainPasses:
    """One graph for all cells, and one backward pass through it."""

    def __init__(self, weights: StackedWeights) -> None:
        self.network = StackedNetwork(weights.config, weights.tensors)
        self._scores: StackedScores | None = None

    def score(self, given: Responses) -> tuple[StackedScores, Tensor | None]:
        """Scores of responses (see `scoring.score`); no squared score norms, which others return as `[E, B]`."""
        self._scores = score(self.network, given)
        return self._scores, None

    def backward(self, answers: Sequence[Answer]) -> None:
        """Leave the gradients of all losses in the stacked weights; 0 for a cell without an answer."""
        assert self._scores is not None
        scores, self._scores = self._scores, None
        send_backward_all(scores, answers)


def send_backward_all(scores: StackedScores, answers: Sequence[Answer]) -> None:
    """One backward pass from the losses of all answers, in the order of the scores' cells; 0 for those without."""
    shape, device = scores.logp.shape[1:], scores.logp.device
    none = torch.zeros(shape, device=device)
    coefficients = [rows_of(a.coefficients, shape) if isinstance(a, Update) else none for a in answers]
    outputs, gradients = [scores.logp], [-torch.stack(coefficients)]
    bonus = {
        cell: rows_of(a.entropy_coefficients, shape)
        for cell, a in enumerate(answers)
        if isinstance(a, Update) and a.entropy_coefficients is not None
    }
    if bonus:
        outputs.append(scores.differentiable_entropy(list(bonus)))
        gradients.append(-torch.stack(list(bonus.values())))
    backward_through(outputs, gradients)


class NormPasses:
    """Score norms from one backward pass for all cells; gradients from what they kept, where a method permits it.

    Norms and gradients are formed cell by cell, which gives a cell on a CPU the bits it has alone.

    Args:
        policies: The policies, in the order of the weights.
        weights: Their stacked weights.
    """

    def __init__(self, policies: Sequence[TinyPolicy], weights: StackedWeights) -> None:
        self.policies, self.weights = policies, weights
        self.norms = StackedNorms(policies, weights)
        self._given: Responses | None = None

    def score(self, given: Responses) -> tuple[StackedScores, Tensor | None]:
        """See `PlainPasses`."""
        self._given = given
        return self.norms.score(given)

    def backward(self, answers: Sequence[Answer]) -> None:
        """See `PlainPasses`."""
        for tensor in self.weights.tensors.values():
            tensor.grad = torch.zeros_like(tensor)
        for cell, answer in enumerate(answers):
            if isinstance(answer, Update):
                self._backward(cell, answer)
        self.norms.release()

    def _backward(self, cell: int, update: Update) -> None:
        """The gradient of one cell; like `Learner`, through the network again where tokens of a row differ."""
        assert self._given is not None
        given = Responses(self._given.prompts[cell], self._given.responses[cell], self._given.mask[cell])
        row = constant_rows(update, slice(None), given.mask)
        if row is not None:
            self.norms.assemble(cell, row)
            return
        policy = self.policies[cell]
        policy.zero_grad(set_to_none=True)
        send_backward(policy.score_rows(given.each), update, slice(None))
        self.weights.take_gradient(cell)


def rows_of(tokens: Tensor, shape: torch.Size) -> Tensor:
    """Coefficients `[P, G, T]` as `[B, T]` in float32."""
    return tokens.to(torch.float32).reshape(shape)
