"""Layers without a rule of their own: gradients are recomputed per trajectory under `torch.func.vmap`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.utils import _pytree as pytree

from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import LayerRule


class FallbackRule(LayerRule):
    """For any layer whose tensor arguments have the trajectory as their first axis: exact, but runs the layer again.

    Args:
        layer: The layer; covers its own parameters and those of the layers inside it.
    """

    joinable = False

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer
        self.names = [name for name, parameter in layer.named_parameters() if parameter.requires_grad]
        found = dict(layer.named_parameters())
        self.parameters = [found[name] for name in self.names]

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: int) -> Any:
        """See `LayerRule.read`; keeps the index of the output and all arguments."""
        return output, pytree.tree_map_only(Tensor, Tensor.detach, (args, kwargs))

    def shape(self, inputs: Any, output: Tensor) -> torch.Size:
        """See `LayerRule.shape`."""
        return output.shape[:1]

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """See `LayerRule.arrange`."""
        if layout.kind(shape) != "one":
            raise InexactError(
                f"a {type(self.layer).__name__} has no rule, and its output of shape {list(gradient.shape)} does not "
                f"have the {layout.count} trajectories as its first axis, which recomputing it per trajectory needs"
            )
        return inputs, gradient

    def per_row(self, a: Any, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        output, arguments = a
        leaves, structure = pytree.tree_flatten(arguments)
        mapped = [isinstance(leaf, Tensor) and leaf.ndim > 0 and leaf.shape[0] == len(b) for leaf in leaves]
        parameters = {name: parameter.detach() for name, parameter in zip(self.names, self.parameters, strict=True)}

        def one(gradient: Tensor, *rows: Any) -> list[Tensor]:
            alone = [row.unsqueeze(0) if is_row else row for row, is_row in zip(rows, mapped, strict=True)]
            args, kwargs = pytree.tree_unflatten(alone, structure)

            def run(values: dict[str, Tensor]) -> Tensor:
                result: Tensor = pytree.tree_leaves(functional_call(self.layer, values, args, kwargs))[output]
                return result

            (found,) = vjp(run, parameters)[1](gradient.unsqueeze(0))
            return [found[name] for name in self.names]

        try:
            gradients: list[Tensor] = vmap(one, in_dims=(0, *(0 if each else None for each in mapped)))(b, *leaves)
        except RuntimeError as error:
            raise InexactError(
                f"a {type(self.layer).__name__} has no rule and cannot be recomputed per trajectory: {error}"
            ) from error
        return gradients
