"""The interface of a layer rule: gradients with respect to a layer's parameters, trajectory by trajectory.

For one use of a layer, `a` [B, T, ...] is the layer's input and `b` [B, T, ...] the gradient of the summed
log-probabilities with respect to its output; row i belongs to trajectory i only. The gradient of a trajectory with
respect to a parameter is a sum over positions t of a product of a_t and b_t, so its norm and any weighted sum over
trajectories follow without a second backward pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.row_layout import RowLayout


class LayerRule(ABC):
    """Computes one layer's per-trajectory gradients from its inputs and output gradients.

    Attributes:
        parameters: The trainable parameters the rule covers, in the order in which every method returns them.
        joinable: Whether two uses of the layer may be concatenated along the position axis.
    """

    parameters: list[nn.Parameter]
    joinable = True

    @abstractmethod
    def per_row(self, a: Any, b: Tensor) -> list[Tensor]:
        """The gradient of every trajectory, per parameter: [B, *parameter.shape]."""

    def squared(self, a: Any, b: Tensor) -> Tensor:
        """The squared norm of every trajectory's gradient, summed over the parameters: [B]."""
        return sum_squares(self.per_row(a, b))

    def weighted(self, a: Any, b: Tensor, weights: Tensor) -> list[Tensor]:
        """The sum over trajectories of weights[i] times the gradient, per parameter: [*parameter.shape]."""
        return weighted_sum(self.per_row(a, b), weights)

    def inner(self, a: Any, b: Tensor) -> Tensor:
        """Inner products of the trajectories' gradients, summed over the parameters: [B, B]."""
        return inner_products(self.per_row(a, b))

    def per_row_if_small(self, a: Any, b: Tensor) -> list[Tensor] | None:
        """`per_row` where it takes little more memory than `a` and `b`, to be kept instead of them; else None."""
        return None

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: int) -> Any:
        """What to keep of a call for the gradient of its output number `output`: by default the first argument."""
        found: Tensor = args[0] if args else next(iter(kwargs.values()))
        return found.detach()

    def shape(self, inputs: Any, output: Tensor) -> torch.Size:
        """The axes of rows and positions in a call."""
        return output.shape[:-1]

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """`a` and `b`, from what was kept of a call and the gradient of its output."""
        return layout.rows(inputs, shape, real=False), layout.rows(gradient, shape)


class HeadRule(LayerRule):
    """A layer with a weight [V, d] that may be tied to an embedding."""

    @property
    @abstractmethod
    def is_plain(self) -> bool:
        """Whether the weight is trainable and stored [V, d]."""

    @abstractmethod
    def cross(self, a: Any, b: Tensor, ids: Tensor, e: Tensor) -> Tensor:
        """Inner products [B] of the trajectories' gradients of the weight with those of an embedding.

        With the gradient g_t [V] with respect to the logits of position t, whose input is a_t, the product of head and
        embedding gradient is sum_{t,u} g_t[id_u] (a_t . e_u).

        Args:
            a: Input of the head.
            b: Gradients with respect to its output.
            ids: int64 [B, U], input of the embedding.
            e: [B, U, d], gradients with respect to its output, in float32 at least.
        """


class RuledLayer(nn.Module, ABC):
    """A layer that provides its own rule, even where the parameters it uses belong to other layers."""

    @abstractmethod
    def score_norm_rule(self) -> LayerRule:
        """The rule of this layer; it has no parameters where none is trained."""


def sum_squares(gradients: Sequence[Tensor]) -> Tensor:
    """Squared norms over all axes except the first, summed over the tensors: [B]."""
    total: Tensor = torch.linalg.vector_norm(gradients[0].flatten(1), dim=1).square()
    for gradient in gradients[1:]:
        total = total + torch.linalg.vector_norm(gradient.flatten(1), dim=1).square()
    return total


def weighted_sum(gradients: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
    """For each tensor, the sum over its first axis of weights[i] times row i."""
    return [(weights.to(g.dtype) @ g.flatten(1)).view(g.shape[1:]) for g in gradients]


def inner_products(gradients: Sequence[Tensor]) -> Tensor:
    """Inner products of the rows, summed over the tensors: [B, B]."""
    flat = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)
    return flat @ flat.t()


def random_factors(count: int, like: Tensor) -> Tensor:
    """[count] numbers without any pattern, between 0.5 and 1.5, always the same; float64 on the device of `like`."""
    return torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64).add(0.5).to(like.device)


def at_least_float32(x: Tensor) -> Tensor:
    """In float32 or wider, so that products of half-precision gradients are summed in float32."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
