"""Score norms of E cells, and the gradients assembled from them, each as one batched product: the way a GPU takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.score_norms.inspection import layers_of
from vcpo_bench.bench.stack.answers import Answer
from vcpo_bench.bench.stack.network import StackedNetwork, Taped
from vcpo_bench.bench.stack.norms import scored
from vcpo_bench.bench.stack.passes import rows_of, send_backward_all
from vcpo_bench.bench.stack.scoring import StackedScores, score
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.methods import Update


class BatchedNormPasses:
    """What `passes.NormPasses` does cell by cell, for all cells at once: equal but for rounding.

    A layer's rule is asked once. For norms the trajectories of all cells are its rows `[E * B]`. For gradients a cell
    is one row that holds all its positions `[E, B * L]`, with output gradients times the coefficients.

    Args:
        policies: The policies, in the order of the weights.
        weights: Their stacked weights.
    """

    def __init__(self, policies: Sequence[TinyPolicy], weights: StackedWeights) -> None:
        self.weights = weights
        names = {id(parameter): name for name, parameter in policies[0].named_parameters()}
        self._rules = {layer.name: layer.rule for layer in layers_of(policies[0])}
        self._names = {name: [names[id(p)] for p in rule.parameters] for name, rule in self._rules.items()}
        self._given: Responses | None = None
        self._kept: list[tuple[Taped, Tensor]] = []

    def score(self, given: Responses) -> tuple[StackedScores, Tensor | None]:
        """See `passes.PlainPasses`."""
        self._given = given
        scores, tape, gradients = scored(self.weights, given)
        self._kept = list(zip(tape, gradients, strict=True))
        with torch.no_grad():
            shares = [
                self._rules[taped.name].squared(taped.inputs.flatten(0, 1), gradient.flatten(0, 1))
                for taped, gradient in self._kept
            ]
            return scores, torch.stack(shares).sum(0).view(given.mask.shape[:2])

    def backward(self, answers: Sequence[Answer]) -> None:
        """See `PlainPasses`; cells whose coefficients differ within a trajectory go through the network again."""
        assert self._given is not None
        mask = self._given.mask
        none = torch.zeros(mask.shape[1:], device=mask.device)
        tokens = torch.stack([rows_of(a.coefficients, none.shape) if isinstance(a, Update) else none for a in answers])
        first = tokens.gather(2, mask.long().argmax(2, keepdim=True))
        differ = (torch.where(mask, first, 0.0) != torch.where(mask, tokens, 0.0)).any(2).any(1).tolist()
        updates = {cell: each for cell, each in enumerate(answers) if isinstance(each, Update)}
        again = [cell for cell, each in updates.items() if differ[cell] or each.entropy_coefficients is not None]
        self._assemble(first.squeeze(2), [cell in updates and cell not in again for cell in range(len(answers))])
        self._kept = []
        if again:
            self._backward_again(again, answers)

    @torch.no_grad()
    def _assemble(self, coefficients: Tensor, assembled: Sequence[bool]) -> None:
        """The gradients of cells with one coefficient for each trajectory `[E, B]`; 0 for the others."""
        chosen = torch.tensor(assembled, device=coefficients.device).view(-1, 1, 1, 1)
        factors = -coefficients[:, :, None, None]
        for taped, gradient in self._kept:
            b = torch.where(chosen, gradient * factors, 0.0)  # what is not a number must not reach the others
            found = self._rules[taped.name].per_row(taped.inputs.flatten(1, 2), b.flatten(1, 2))
            for name, each in zip(self._names[taped.name], found, strict=True):
                self.weights.tensors[name].grad = each

    def _backward_again(self, cells: Sequence[int], answers: Sequence[Answer]) -> None:
        """Add the gradients of some cells, by a forward and a backward pass of their own."""
        assert self._given is not None
        index = torch.tensor(cells, device=self.weights.device)
        chosen = {name: tensor.index_select(0, index) for name, tensor in self.weights.tensors.items()}
        own = (self._given.prompts, self._given.responses, self._given.mask)
        given = Responses(*(tensor.index_select(0, index) for tensor in own))
        scores = score(StackedNetwork(self.weights.config, chosen), given)
        send_backward_all(scores, [answers[cell] for cell in cells])
