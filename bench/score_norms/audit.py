"""Checks on the first batch for causes of silently wrong norms."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge

from vcpo_bench.bench.score_norms.capture import Use, backward
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.row_layout import RowLayout


def check_every_use_is_seen(model: nn.Module, uses: Sequence[Use], logp: Tensor) -> None:
    """Refuse parameters that reach `logp` other than through a recorded layer, as in a fused loss kernel.

    Args:
        model: Its trainable parameters are searched for in the graph of `logp`.
        uses: The recorded uses of its layers.
        logp: Differentiable log-probabilities.

    Raises:
        InexactError: There is such a parameter.
    """
    seen = {pair for use in uses for pair in _edges(use.path[0] if use.path else use.edge.node, set(use.behind))}
    seen |= {pair for use in uses for pair in zip(use.path[1:], use.path, strict=False)}
    assert logp.grad_fn is not None
    behind = defaultdict(list)
    for user, node in _edges(logp.grad_fn, set()):
        behind[node].append(user)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            for user in behind[get_gradient_edge(parameter).node]:
                if (user, get_gradient_edge(parameter).node) not in seen:
                    raise InexactError(
                        f"parameter {name!r} is used by {user.name()} outside the layer that owns it (a fused loss "
                        "kernel, F.linear on another layer's weight, ...), where hooks do not see its gradient per "
                        "trajectory: call the layer itself"
                    )


def _edges(root: Node, stop: set[Node]) -> set[tuple[Node, Node]]:
    """All edges (node, next node) of the graph reachable from `root` without passing through `stop`."""
    found: set[tuple[Node, Node]] = set()
    visited, open_nodes = {root}, [root]
    while open_nodes:
        node = open_nodes.pop()
        for following, _ in node.next_functions:
            if following is not None:
                found.add((node, following))
                if following not in visited and following not in stop:
                    visited.add(following)
                    open_nodes.append(following)
    return found


def check_rows_are_independent(uses: Sequence[Use], logp: Tensor, weights: Tensor, layout: RowLayout) -> bool:
    """Refuse layers whose rows are not trajectories: send gradients back from every second trajectory, then the others.

    Both passes are needed: under a causal mask only the later trajectories of a packed row could see the earlier ones.

    Args:
        uses: The recorded uses of layers.
        logp: Differentiable log-probabilities.
        weights: See `capture.backward`.
        layout: How rows of trajectories are found in a layer's tensors.

    Returns:
        `first_suffice` for later backward passes, see `capture.backward`.

    Raises:
        InexactError: A gradient arrived in the rows of other trajectories.
    """

    def check(use: Use) -> None:
        assert use.gradient is not None
        rows = use.gradient if use.path else layout.rows(use.gradient, use.shape)
        if bool((rows[1 - parity :: 2].abs() > 0).any()):
            raise InexactError(
                f"trajectories influence each other in layer {use.layer.name!r}, or its first axis (shape "
                f"{list(use.gradient.shape)}) is not the trajectory: their gradients cannot be told apart"
            )
        use.gradient = None

    trajectories = layout.trajectories(logp)
    suffice = True
    for parity in (0, 1):
        half = torch.where(trajectories % 2 == parity, weights, 0.0)
        suffice &= backward(uses, logp, half, check, retain_graph=True)
    return suffice
