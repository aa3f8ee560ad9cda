"""Layers without a rule of their own: gradients are recomputed per trajectory under `torch.func.vmap`."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.utils import _pytree as pytree

from vcpo_bench.bench.score_norms.errors import NotBatchedError
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import LayerRule, at_least_float32, random_factors, sum_squares, weighted_sum

TOLERANCE = 1e-4
"""Relative difference of two sums of the same gradients, computed in float32 at least, that rounding explains."""
MOST_SHARED = 2
"""How many arguments may have as many rows as there are trajectories by coincidence."""


class FallbackRule(LayerRule):
    """For any layer whose results have the trajectory as their first axis: exact, but runs the layer again.

    Tensor arguments whose first axis has one row per trajectory are split, the others shared by all trajectories. An
    argument may have that many rows by coincidence, such as a table or a causal mask of as many positions. So every
    split is proved: the gradients per trajectory, added with random factors, must be the gradient of the layer called
    once with all rows. Where they are not, such arguments are shared, too, one or two at a time.

    Everything is recomputed in float32 at least, whatever the layer's dtype.

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
            raise NotBatchedError(
                f"a {type(self.layer).__name__} has no rule, and its output of shape {list(gradient.shape)} does not "
                f"have the {layout.count} trajectories as its first axis, which recomputing it per trajectory needs; "
                "let it take and return rows, or give it a rule of its own (RuledLayer)"
            )
        return inputs, gradient

    def per_row(self, a: Any, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        output, arguments = a
        leaves, structure = pytree.tree_flatten(pytree.tree_map_only(Tensor, at_least_float32, arguments))
        b, pull = at_least_float32(b), partial(self._pull, output, structure)
        factors = random_factors(len(b), b).to(b.dtype)
        reasons = []
        try:
            expected = pull(b * factors.view(-1, *[1] * (b.ndim - 1)), *leaves)
        except Exception as error:  # a layer called in another way than in the model may raise anything
            raise self._refusal(error) from error
        for split in splits(leaves, len(b)):
            try:
                found = _mapped(pull, split, b, leaves)
            except Exception as error:
                reasons.append(str(error))
            else:
                if _agree(found, expected, factors):
                    return found
                reasons.append("its gradients per trajectory do not add up to the gradient of all rows")
        raise self._refusal(reasons[0])

    def _pull(self, output: int, structure: pytree.TreeSpec, gradient: Tensor, *leaves: Any) -> list[Tensor]:
        """The gradient of every parameter from one call of the layer, given that of its output."""
        args, kwargs = pytree.tree_unflatten(list(leaves), structure)
        values = {name: at_least_float32(p.detach()) for name, p in zip(self.names, self.parameters, strict=True)}

        def run(values: dict[str, Tensor]) -> Tensor:
            result: Tensor = pytree.tree_leaves(functional_call(self.layer, values, args, kwargs))[output]
            return result

        result, back, *_ = vjp(run, values)
        (found,) = back(gradient.to(result.dtype))
        return [found[name] for name in self.names]

    def _refusal(self, reason: object) -> NotBatchedError:
        return NotBatchedError(
            f"a {type(self.layer).__name__} has no rule and cannot be recomputed per trajectory: {reason}; give it a "
            "rule of its own (RuledLayer), or arguments whose first axis is the trajectory"
        )


def splits(leaves: Sequence[Any], count: int) -> Iterator[list[bool]]:
    """Which arguments to split by trajectory: all that have `count` rows, then all but one, then all but two."""
    candidates = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.shape[:1] == (count,)]
    for number in range(min(MOST_SHARED, len(candidates)) + 1):
        for shared in combinations(candidates, number):
            yield [i in candidates and i not in shared for i in range(len(leaves))]


def _mapped(pull: Callable[..., list[Tensor]], split: Sequence[bool], b: Tensor, leaves: Sequence[Any]) -> list[Tensor]:
    """`pull` for each trajectory alone: per parameter, [B, *shape]."""

    def one(gradient: Tensor, *rows: Any) -> list[Tensor]:
        alone = [row.unsqueeze(0) if is_row else row for row, is_row in zip(rows, split, strict=True)]
        return pull(gradient.unsqueeze(0), *alone)

    found: list[Tensor] = vmap(one, in_dims=(0, *(0 if is_row else None for is_row in split)))(b, *leaves)
    return found


def _agree(rows: Sequence[Tensor], expected: Sequence[Tensor], factors: Tensor) -> bool:
    """Whether gradients per trajectory, added with the factors, are what is expected."""
    pairs = zip(weighted_sum(rows, factors), expected, strict=True)
    difference = torch.stack([(found - wanted).square().sum() for found, wanted in pairs]).sum().sqrt()
    return not bool(difference > TOLERANCE * (factors * sum_squares(rows).sqrt()).sum())
