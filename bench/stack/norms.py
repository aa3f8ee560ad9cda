"""Score norms of E cells from one backward pass: the layer rules of each cell, on what all of them left."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.score_norms.inspection import layers_of
from vcpo_bench.bench.score_norms.rules import LayerRule
from vcpo_bench.bench.score_norms.sharing import Contribution, contribution_of
from vcpo_bench.bench.stack.network import StackedNetwork, Taped
from vcpo_bench.bench.stack.scoring import StackedScores, score
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.trajectories import Responses


def scored(weights: StackedWeights, given: Responses) -> tuple[StackedScores, list[Taped], Sequence[Tensor]]:
    """Scores without graph, and what the layers saw: their inputs, and the gradients of their outputs.

    Arguments are those of `scoring.score`. Every trajectory has a prompt of its own, so the layers' rows are
    trajectories. Gradients are those of each trajectory's summed log-probabilities.
    """
    frozen = {name: tensor.detach() for name, tensor in weights.tensors.items()}
    tape: list[Taped] = []
    each = given.prompts.repeat_interleave(given.responses.shape[1] // given.prompts.shape[1], 1)
    scores = score(StackedNetwork(weights.config, frozen, tape), given._replace(prompts=each))
    outputs = [taped.output for taped in tape]
    # the same derivatives given to PyTorch would have it import sympy, for 0.8 s
    gradients = torch.autograd.grad((scores.logp * scores.mask).sum(), outputs)
    return StackedScores(scores.logp.detach(), scores.distribution.detach(), scores.mask), tape, gradients


class StackedNorms:
    """What `ScoreNorms` is for one policy.

    The passes through the networks are those of the whole stack. The rules are asked cell by cell, because the sums of
    a cell alone are products of other shapes, which round otherwise.

    Args:
        policies: The policies, in the order of the weights.
        weights: Their stacked weights.
    """

    def __init__(self, policies: Sequence[TinyPolicy], weights: StackedWeights) -> None:
        self.weights = weights
        self._rules: list[dict[str, LayerRule]] = [
            {layer.name: layer.rule for layer in layers_of(policy)} for policy in policies
        ]
        self._kept: list[list[Contribution]] = []

    def score(self, given: Responses) -> tuple[StackedScores, Tensor]:
        """Scores without graph, and the squared score norms `[E, B]`; arguments are those of `scoring.score`."""
        scores, tape, gradients = scored(self.weights, given)
        with torch.no_grad():
            self._kept = [self._contributions(cell, tape, gradients) for cell in range(len(self._rules))]
            squared = [torch.stack([kept.squared() for kept in own]).sum(0) for own in self._kept]
        return scores, torch.stack(squared)

    def _contributions(self, cell: int, tape: Sequence[Taped], gradients: Sequence[Tensor]) -> list[Contribution]:
        """The share of every layer of a cell, in the order in which `ScoreNorms` adds them up: the embeddings last."""
        found = {
            taped.name: contribution_of([(self._rules[cell][taped.name], taped.inputs[cell], gradient[cell])], True)
            for taped, gradient in zip(tape, gradients, strict=True)
        }
        embeddings = ["tokens", "positions"]
        return [found[name] for name in [*(name for name in reversed(found) if name not in embeddings), *embeddings]]

    @torch.no_grad()
    def assemble(self, cell: int, coefficients: Tensor) -> None:
        """Leave the gradient of the loss of a cell, with one coefficient for each trajectory `[B]`, in the weights."""
        for kept in reversed(self._kept[cell]):
            for parameter, gradient in kept.weighted(-coefficients).items():
                parameter.grad = gradient.to(parameter.dtype)
        self.weights.take_gradient(cell)

    def release(self) -> None:
        """Release everything kept of the last batch."""
        self._kept = []
