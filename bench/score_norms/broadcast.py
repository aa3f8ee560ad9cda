"""Parameters that all trajectories share by broadcasting: learned positions [T, d] added to [B, T, d].

The gradient of the broadcast tensor is already summed over the trajectories. At the node that broadcasts it, the
gradient still has one row per trajectory: that node is found in the autograd graph, and the gradient is caught there.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from vcpo_bench.bench.score_norms.capture import Layer, Use
from vcpo_bench.bench.score_norms.embedding import EmbeddingRule
from vcpo_bench.bench.score_norms.errors import NotBatchedError
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import LayerRule

RESHAPING = ("UnsqueezeBackward0", "SqueezeBackward1", "ViewBackward0", "UnsafeViewBackward0", "AliasBackward0")
SELECTING = ("SliceBackward0", "SelectBackward0", "PermuteBackward0", "TransposeBackward0", "TBackward0")
Users = dict[Node, list[tuple[Node, int]]]


@dataclass(frozen=True)
class BroadcastSite:
    """Where a tensor without a trajectory axis is broadcast over the trajectories.

    Attributes:
        path: The nodes from the parameter or layer output to the node that broadcasts it.
        shape: Shape of the tensor that is broadcast.
    """

    path: tuple[Node, ...]
    shape: torch.Size

    def per_row(self, gradient: Tensor) -> Tensor:
        """Gradient of the broadcast tensor for every trajectory, [B, *shape], from that of the sum, [B, ...]."""
        kept = (1,) * (gradient.ndim - len(self.shape)) + tuple(self.shape)
        summed = [axis for axis in range(1, gradient.ndim) if kept[axis] == 1 and gradient.shape[axis] != 1]
        rows = gradient.sum(summed, keepdim=True) if summed else gradient
        return rows.reshape(len(gradient), *self.shape)

    def descend(self, gradient: Tensor) -> Tensor:
        """Gradient with respect to the parameter, from that of the tensor sliced and reshaped from it."""
        for node in self.path[-2:0:-1]:
            found: Any = node(gradient)  # type: ignore[operator]
            gradient = found[0] if isinstance(found, tuple) else found
        return gradient


class BroadcastRule(LayerRule):
    """A parameter, sliced or reshaped, added to one row per trajectory: its gradient is that of the sum, reduced.

    Args:
        parameter: Of any shape.
    """

    joinable = False

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameters = [parameter]

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """See `LayerRule.arrange`."""
        return inputs, inputs.per_row(gradient)

    def per_row(self, a: BroadcastSite, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`; only the part of the parameter that was used, in the shape of the broadcast."""
        return [b]

    def weighted(self, a: BroadcastSite, b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `LayerRule.weighted`."""
        total = (weights.to(b.dtype) @ b.flatten(1)).view(a.shape)
        return [a.descend(total)]


class BroadcastEmbeddingRule(EmbeddingRule):
    """An embedding of positions [T] or [1, T] whose output is added to one row per trajectory."""

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """See `LayerRule.arrange`."""
        ids, site = inputs
        rows = site.per_row(gradient)
        return ids.flatten().expand(len(rows), -1), rows.reshape(len(rows), ids.numel(), -1)


def with_broadcasts(uses: Sequence[Use], loose: Sequence[Layer], logp: Tensor, layout: RowLayout) -> list[Use]:
    """The recorded uses, with broadcast embeddings caught where they are broadcast, plus the uses of loose parameters.

    Args:
        uses: As recorded.
        loose: Parameters that belong to no layer with a rule, as layers with a `BroadcastRule`.
        logp: Differentiable log-probabilities.
        layout: How rows of trajectories are found in a layer's tensors.

    Raises:
        NotBatchedError: A loose parameter is used in another way than added to one row per trajectory.
    """
    one_row = {use for use in uses if isinstance(use.layer.rule, EmbeddingRule) and use.shape[:-1].numel() == 1}
    suspects = one_row if layout.count > 1 else set()
    if not (loose or suspects):
        return list(uses)
    assert logp.grad_fn is not None
    users = users_of(logp.grad_fn)
    found = [_embedding_use(use, users, layout) if use in suspects else use for use in uses]
    return found + [use for layer in loose for use in _loose_uses(layer, users, layout)]


def _embedding_use(use: Use, users: Users, layout: RowLayout) -> Use:
    rule = use.layer.rule
    assert isinstance(rule, EmbeddingRule)
    site = _climb(use.edge.node, users, (*use.shape, rule.parameters[0].shape[1]), RESHAPING, layout.count)
    if site is None:
        return use
    layer = replace(use.layer, rule=BroadcastEmbeddingRule(rule.parameters[0], rule.padding_idx, rule.scale))
    edge = GradientEdge(site.path[-1], 0)
    return replace(use, layer=layer, inputs=(use.inputs, site), edge=edge, path=site.path)


def _loose_uses(layer: Layer, users: Users, layout: RowLayout) -> list[Use]:
    parameter = layer.rule.parameters[0]
    node = get_gradient_edge(parameter).node
    if not users[node]:
        return []
    site = _climb(node, users, parameter.shape, (*RESHAPING, *SELECTING), layout.count)
    if site is None:
        raise NotBatchedError(
            f"parameter {layer.name!r} belongs to no layer of its own and is not simply added to one row per "
            "trajectory: wrap the code that uses it in an nn.Module that takes and returns rows"
        )
    shape = torch.Size([layout.count])
    return [Use(layer, site, shape, GradientEdge(site.path[-1], 0), (), path=site.path)]


def _climb(node: Node, users: Users, shape: Sequence[int], passing: Sequence[str], count: int) -> BroadcastSite | None:
    """Follow a tensor of `shape` through nodes that only reshape it, to the one that broadcasts it to `count` rows."""
    path = [node]
    while len(users[node]) == 1:
        ((user, index),) = users[node]
        below, number = user.next_functions[index]
        assert below is not None
        if below is not path[0]:
            shape = below._input_metadata[number].shape
        path.append(user)
        incoming = user._input_metadata[0].shape
        name = user.name()
        if name in ("AddBackward0", "ExpandBackward0") and getattr(user, "_saved_alpha", 1) == 1:
            added_axis = len(shape) < len(incoming) or shape[0] == 1
            return BroadcastSite(tuple(path), torch.Size(shape)) if added_axis and incoming[0] == count else None
        if name not in passing:
            return None
        node = user
    return None


def users_of(root: Node) -> Users:
    """For every node of the graph below `root`, the nodes its gradient comes from, with the index of the input."""
    users: Users = defaultdict(list)
    visited, open_nodes = {root}, [root]
    while open_nodes:
        node = open_nodes.pop()
        for index, (following, _) in enumerate(node.next_functions):
            if following is not None:
                users[following].append((node, index))
                if following not in visited:
                    visited.add(following)
                    open_nodes.append(following)
    return users
