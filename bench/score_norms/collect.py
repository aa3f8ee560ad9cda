"""One backward pass through recorded uses, settled group by group as soon as a group is complete."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.capture import LayerTape, Use, backward
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.sharing import Contribution, contribution_of


class RecordedForward(NamedTuple):
    """A recorded forward pass.

    Attributes:
        uses: The uses of layers, with those of broadcast parameters.
        logp: [B, T] (or [B]) differentiable log-probabilities.
        weights: Factor of each of them, in the same shape.
        layout: How rows of trajectories are found in a layer's tensors.
    """

    uses: Sequence[Use]
    logp: Tensor
    weights: Tensor
    layout: RowLayout


def collect(
    tape: LayerTape,
    groups: Mapping[str, str],
    recorded: RecordedForward,
    receive: Callable[[str, Contribution], None],
    *,
    keep: bool,
    retain_graph: bool,
    retain_inputs: bool = False,
    first_suffice: bool = False,
) -> None:
    """Backpropagate; hand out each group's contribution as soon as all its uses have input and gradient.

    Args:
        tape: Recorded the uses.
        groups: Name of the group of every layer name.
        recorded: The forward pass.
        receive: Called with every group and its contribution.
        keep: See `Contribution`.
        retain_graph: Keep the graph for another backward pass.
        retain_inputs: Keep the inputs of layers for another call.
        first_suffice: See `capture.backward`.

    Raises:
        InexactError: A layer is used in another way than in the first batch.
        NotBatchedError: A layer's tensors cannot be split by trajectory.
    """
    uses, logp, weights, layout = recorded
    members: dict[str, list[Use]] = defaultdict(list)
    for use in uses:
        members[groups[use.layer.name]].append(use)
    missing = Counter({group: len(group_uses) for group, group_uses in members.items()})

    # a replay calls this inside the modes of the forward pass, where autocast would round the norms
    @torch.no_grad()
    @torch.autocast(logp.device.type, enabled=False)  # type: ignore[untyped-decorator]
    def settle(group: str) -> None:
        sides = []
        for use in members.pop(group):
            if use.inputs is None:
                raise InexactError(f"layer {use.layer.name!r} is no longer checkpointed: create a new ScoreNorms")
            if use.gradient is not None:
                sides.append((use.layer.rule, *use.layer.rule.arrange(use.inputs, use.gradient, use.shape, layout)))
            use.gradient = None
            if not retain_inputs:
                use.inputs = None
        if sides:
            receive(group, contribution_of(sides, keep))

    def complete(use: Use) -> None:
        group = groups[use.layer.name]
        if use.inputs is not None and use.gradient is not None:
            missing[group] -= 1
            if not missing[group]:
                settle(group)

    with tape.replaying(complete) as arrived:
        backward(uses, logp, weights, arrived, retain_graph, first_suffice)
    for group in list(members):
        settle(group)
