"""The exact way that works for every model: one backward pass per trajectory, through the graph of the whole batch."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.rules import at_least_float32, inner_products
from vcpo_bench.bench.score_norms.sharing import Contribution, Gradients


@dataclass(eq=False)
class OneByOne(Contribution):
    """The share of all parameters in every trajectory's gradient; each method costs backward passes.

    The graph stays in memory for as long as this object does.

    Attributes:
        logp: Differentiable log-probabilities.
        weights: Factor of each of them, in the shape of `logp`.
        trajectories: Index 0..N-1 of the trajectory of each of them, or -1, in the shape of `logp`.
        count: Number of trajectories N.
        groups: Name of the group of layers that each trainable parameter belongs to.
    """

    logp: Tensor
    weights: Tensor
    trajectories: Tensor
    count: int
    groups: Mapping[nn.Parameter, str]

    @property
    def nbytes(self) -> int:
        """Of the graph, whose size torch does not tell: too many."""
        return sys.maxsize

    def squared_by_group(self) -> dict[str, Tensor]:
        """[N] squared norms for each group of layers, at least float32; N backward passes."""
        dtype = torch.promote_types(self.logp.dtype, torch.float32)
        found = {group: self.logp.new_zeros(self.count, dtype=dtype) for group in self.groups.values()}
        for number in range(self.count):
            for parameter, gradient in self._of(number).items():
                found[self.groups[parameter]][number] += at_least_float32(gradient).square().sum()
        return found

    def squared(self) -> Tensor:
        """[N] squared norms; N backward passes."""
        return torch.stack(list(self.squared_by_group().values())).sum(0)

    def weighted(self, weights: Tensor) -> Gradients:
        """Sum over trajectories of weights[i] times the gradient, by parameter; one backward pass."""
        factors = weights[self.trajectories.clamp(min=0)].masked_fill(self.trajectories < 0, 0.0)
        return self._backward(factors.to(self.logp.dtype))

    def inner(self) -> Tensor:
        """[N, N] inner products of the trajectories' gradients; N backward passes."""
        return inner_products(list(self.per_row().values()))

    def per_row(self) -> Gradients:
        """The gradients [N, *shape], by parameter; N backward passes."""
        rows = [self._of(number) for number in range(self.count)]
        return {
            p: torch.stack([at_least_float32(row.get(p, torch.zeros_like(p))) for row in rows]) for p in self.groups
        }

    def _of(self, number: int) -> Gradients:
        return self._backward((self.trajectories == number).to(self.logp.dtype))

    def _backward(self, factors: Tensor) -> Gradients:
        parameters = list(self.groups)
        found = torch.autograd.grad(self.logp, parameters, self.weights * factors, retain_graph=True, allow_unused=True)
        return {p: gradient for p, gradient in zip(parameters, found, strict=True) if gradient is not None}
