"""What a layer must say about itself: its parameters' gradients, trajectory by trajectory, from inputs and output
gradients.

For one use of a layer, `a` [B, T, ...] is what the layer read and `b` [B, T, ...] the gradient of the summed
log-probabilities with respect to what it returned; row i belongs to trajectory i alone. The trajectory's gradient of
a parameter is a sum over positions t of a product of a_t and b_t, so its norm and any weighted sum over trajectories
follow without a second backward.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Rule(ABC):
    """How one layer's per-trajectory gradients follow from its inputs and output gradients.

    Attributes:
        parameters: the trainable parameters the rule accounts for, in the order every method returns them.
    """

    parameters: list[nn.Parameter]

    @abstractmethod
    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """The gradient of every trajectory, per parameter: [B, *parameter.shape]."""

    def squared(self, a: Tensor, b: Tensor) -> Tensor:
        """The squared norm of every trajectory's gradient, summed over the parameters: [B]."""
        return sum_squares(self.per_row(a, b))

    def weighted(self, a: Tensor, b: Tensor, weights: Tensor) -> list[Tensor]:
        """The sum over trajectories of weights[i] times the gradient, per parameter: [*parameter.shape]."""
        return weighted_sum(self.per_row(a, b), weights)

    def remembered(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """`per_row` if it is small enough to be kept in place of `a` and `b`, else None."""
        return None

    def positions(self, a: Tensor) -> int:
        """How many leading axes of `a` count rows and positions; the rest belong to the layer."""
        return a.ndim - 1


def sum_squares(gradients: Sequence[Tensor]) -> Tensor:
    """Squared norms over all axes but the first, summed over the tensors: [B]."""
    total: Tensor = torch.linalg.vector_norm(gradients[0].flatten(1), dim=1).square()
    for gradient in gradients[1:]:
        total = total + torch.linalg.vector_norm(gradient.flatten(1), dim=1).square()
    return total


def weighted_sum(gradients: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
    """Sum over the first axis of weights[i] times each tensor's row i."""
    return [(weights.to(g.dtype) @ g.flatten(1)).view(g.shape[1:]) for g in gradients]
