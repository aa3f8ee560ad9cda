"""Checks on the first batch for causes of silently wrong norms."""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge

from vcpo_bench.bench.score_norms.capture import Use, backward
from vcpo_bench.bench.score_norms.collect import RecordedForward
from vcpo_bench.bench.score_norms.errors import NotBatchedError
from vcpo_bench.bench.score_norms.rules import random_factors
from vcpo_bench.bench.score_norms.sharing import Contribution

TOLERANCE, HALF_TOLERANCE = 1e-3, 5e-2
"""Relative differences of two sums of the same gradients that rounding explains: from float32 on, and below."""
LEAST_SHARE = 0.1
"""Gradients of layers with less than this share of the whole are compared with that share: theirs may be rounding."""


def check_every_use_is_seen(model: nn.Module, uses: Sequence[Use], logp: Tensor) -> None:
    """Refuse parameters that reach `logp` other than through a recorded layer, as in a fused loss kernel.

    Args:
        model: Its trainable parameters are searched for in the graph of `logp`.
        uses: The recorded uses of its layers.
        logp: Differentiable log-probabilities.

    Raises:
        NotBatchedError: There is such a parameter.
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
                    raise NotBatchedError(
                        f"parameter {name!r} is used by {user.name()} outside the layer that owns it (a fused loss "
                        "kernel, F.linear on another layer's weight, ...), where hooks do not see its gradient per "
                        "trajectory: call the layer itself, or ChunkedHead in place of a fused head"
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


def check_rows_are_independent(recorded: RecordedForward, bits: int = 1) -> bool:
    """Refuse layers whose rows are not trajectories: send gradients back from every second trajectory, then the others.

    Both passes are needed: under a causal mask only the later trajectories of a packed row could see the earlier ones.

    Args:
        recorded: The forward pass; only its uses are checked.
        bits: How many bits of the trajectories' numbers halve them in turn, two passes each. One bit leaves influence
            within a half to `Sums`; all bits tell any two trajectories apart.

    Returns:
        `first_suffice` for later backward passes, see `capture.backward`.

    Raises:
        NotBatchedError: A gradient arrived in the rows of other trajectories, or the rows cannot be found.
    """
    uses, logp, weights, layout = recorded
    seen: list[tuple[str, torch.Size]] = []
    crossed: list[Tensor] = []

    def check(others: Tensor, use: Use) -> None:
        assert use.gradient is not None
        rows = use.gradient if use.path else layout.rows(use.gradient, use.shape)
        seen.append((use.layer.name, use.gradient.shape))
        crossed.append((rows[others].abs() > 0).any())
        use.gradient = None

    trajectories, numbers = layout.trajectories(logp), torch.arange(layout.count, device=logp.device)
    suffice = True
    for bit in range(bits):
        for side in (0, 1):
            half = torch.where((trajectories >> bit) % 2 == side, weights, 0.0)
            others = ((numbers >> bit) % 2 != side).nonzero().squeeze(1)
            suffice &= backward(uses, logp, half, partial(check, others), retain_graph=True)
    for (name, shape), found in zip(seen, _numbers(crossed), strict=True):
        if found:
            raise NotBatchedError(
                f"trajectories influence each other in layer {name!r}, or its first axis (shape {list(shape)}) is not "
                "the trajectory: their gradients cannot be told apart; put one trajectory in each row, or score them "
                "in separate forward passes"
            )
    return suffice


class Sums:
    """Whether the gradients per trajectory, added with random factors, are autograd's gradient of the log-probabilities
    added with the same factors. For factors without any pattern, that holds only if each of them is right.

    Takes one backward pass with parameter gradients.

    Args:
        model: Its trainable parameters are compared.
        recorded: The forward pass.
        late: Groups that cannot be added up while a backward pass runs, as those of broadcast parameters.
    """

    def __init__(self, model: nn.Module, recorded: RecordedForward, late: Collection[str]) -> None:
        uses, logp, weights, layout = recorded
        self._late, self._waiting = late, dict[str, Contribution]()
        self._factors = random_factors(layout.count, logp).to(logp.dtype).double()
        trajectories = layout.trajectories(logp)
        each = self._factors.to(logp.dtype)[trajectories.clamp(min=0)] * (trajectories >= 0)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        found = torch.autograd.grad(logp, parameters, weights * each, retain_graph=True, allow_unused=True)
        self._expected = dict(zip(parameters, found, strict=True))
        half = any(torch.finfo(_dtype_of(use)).bits < 32 for use in uses)
        self._tolerance = HALF_TOLERANCE if half else TOLERANCE
        self._least = LEAST_SHARE * math.hypot(*_numbers([each.norm() for each in found if each is not None]))
        self._groups: list[str] = []
        self._differences: list[Tensor] = []
        self._scales: list[Tensor] = []

    def receive(self, group: str, contribution: Contribution) -> None:
        """Compare what the layers of a group found, and release what it was compared with."""
        if group in self._late:
            self._waiting[group] = contribution
        else:
            self._compare(group, contribution)

    def finish(self) -> None:
        """Compare the groups that had to wait, and look at all differences.

        Raises:
            NotBatchedError: A group found something else.
        """
        for group, contribution in self._waiting.items():
            self._compare(group, contribution)
        differences, scales = _numbers(self._differences), _numbers(self._scales)
        for group, difference, scale in zip(self._groups, differences, scales, strict=True):
            if difference > self._tolerance * max(scale, self._least):
                raise NotBatchedError(
                    f"the trajectories' gradients of layer {group!r} do not add up to the gradient of their sum, as if "
                    "it computed something else each time it is called: give it a rule of its own (RuledLayer)"
                )

    def _compare(self, group: str, contribution: Contribution) -> None:
        scale = (self._factors * contribution.squared().sqrt()).sum()
        for parameter, found in contribution.weighted(self._factors).items():
            expected = self._expected.pop(parameter)
            self._groups.append(group)
            self._differences.append((found if expected is None else found - expected).norm())
            self._scales.append(scale)


def _numbers(found: Sequence[Tensor]) -> list[float]:
    """The values of scalars, together: each look at one waits for a GPU."""
    return torch.stack([each.double() for each in found]).tolist() if found else []


def _dtype_of(use: Use) -> torch.dtype:
    """Dtype of the gradient that will arrive."""
    found: torch.dtype = use.edge.node._input_metadata[use.edge.output_nr].dtype
    return found
