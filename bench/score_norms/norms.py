"""Exact squared norms of all trajectories' score gradients, and the gradient of the update, from one backward pass."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.audit import check_every_use_is_seen, check_rows_are_independent
from vcpo_bench.bench.score_norms.broadcast import with_broadcasts
from vcpo_bench.bench.score_norms.capture import LayerTape, Use, backward
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.inspection import groups_of, layers_of, loose_parameters_of
from vcpo_bench.bench.score_norms.row_layout import PackedLayout, RowLayout
from vcpo_bench.bench.score_norms.sharing import Contribution, contribution_of


class ScoreNorms:
    """||grad log pi(y_i | x)||^2 of every trajectory of a batch, at nearly the cost of one backward pass.

    Hooks record the forward pass. One backward pass without parameter gradients yields every layer's output gradient.
    The norms follow layer by layer (`rules.LayerRule`), and so does the gradient of any loss with one coefficient per
    trajectory ("book-keeping"). Rows of the batch (axis 0) are trajectories that must not influence each other;
    otherwise `segments` says which positions belong together.

    The first batch of each combination of shapes is checked for causes of silently wrong norms (`audit`), which costs
    two more backward passes.

    Args:
        model: The model; its layers are inspected once, and hooks stay on it until `close`.

    Raises:
        InexactError: The model has a layer for which exact norms are impossible.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        layers = layers_of(model)
        self._loose = loose_parameters_of(model)
        self._groups = groups_of([*layers, *self._loose])
        self._tape = LayerTape(layers)
        self._trainable = self._trainable_parameters()
        self._checked: dict[tuple[tuple[str, str], ...], bool] = {}
        self._kept: dict[str, Contribution] = {}
        self._layers: dict[str, Tensor] = {}

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the forward pass inside the block; what is kept of an earlier one is released.

        Raises:
            InexactError: Parameters were frozen, unfrozen or replaced since the model was inspected.
        """
        self.release()
        if self._trainable_parameters() != self._trainable:
            raise InexactError("parameters were frozen, unfrozen or replaced: create a new ScoreNorms for the model")
        with self._tape.recording():
            yield

    @torch.no_grad()
    def squared_norms(
        self,
        logp: Tensor,
        mask: Tensor | None = None,
        *,
        retain_graph: bool = False,
        segments: Tensor | Sequence[Tensor] | None = None,
    ) -> Tensor:
        """||grad sum_t mask_it logp_it||^2 over all trainable parameters, for every trajectory i.

        Args:
            logp: [B, T] (or [B]) log-probabilities computed inside `record`, differentiable.
            mask: In the shape of `logp`, True where a token counts; None: everywhere.
            retain_graph: False: keep what `assemble` needs and free the graph. True: keep only the graph, for a second
                backward pass (`logp.backward(-coefficients)`); `assemble` is then unavailable.
            segments: For rows that hold several trajectories: int64, in the shape of the positions the layers see, the
                index 0..N-1 of each position's trajectory, or -1. Add a tensor for every other set of positions, as
                when the head sees fewer. One of them must have the shape of `logp`.

        Returns:
            [B], or [N] with segments, in the dtype of `logp`, at least float32. `.grad` is not touched.

        Raises:
            InexactError: Nothing was recorded, or a layer's tensors cannot be split by trajectory.
        """
        uses: Sequence[Use] = self._tape.uses
        if not uses or logp.grad_fn is None:
            raise InexactError("nothing was recorded: compute logp inside `with norms.record():`, with gradients on")
        weights = torch.ones_like(logp) if mask is None else mask.to(logp.dtype)
        layout = self._layout(uses, logp, segments)
        uses = with_broadcasts(uses, self._loose, logp, layout)
        first_suffice = self._check_once(uses, logp, weights, layout)
        self._collect(uses, logp, weights, layout, retain_graph, first_suffice)
        self._tape.uses = []
        return torch.stack(list(self._layers.values())).sum(0)

    def layers(self) -> dict[str, Tensor]:
        """Squared norms of the last batch by layer name, each [B]; their sum is `squared_norms`.

        Layers that share a parameter form one entry, their names joined with "+".
        """
        return self._layers

    def assemble(self, coefficients: Tensor) -> None:
        """Add the gradient of the loss, -sum_i coefficients[i] grad log pi(y_i|x), to `.grad` of the parameters.

        Args:
            coefficients: [B], -dLoss/dlogp per token, constant over a trajectory's counted tokens.

        Raises:
            InexactError: Nothing is kept: no batch was recorded, or its graph was retained instead.
        """
        for parameter, gradient in self.gradient(-coefficients).items():
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)

    @torch.no_grad()
    def gradient(self, weights: Tensor) -> dict[nn.Parameter, Tensor]:
        """The sum over i of weights[i] grad log pi(y_i|x), by parameter; `.grad` is not touched.

        Args:
            weights: [B].

        Raises:
            InexactError: Nothing is kept.
        """
        return {
            parameter: gradient.to(parameter.dtype)
            for contribution in reversed(self.contributions())  # the last ones are still in the CPU cache
            for parameter, gradient in contribution.weighted(weights).items()
        }

    def contributions(self) -> list[Contribution]:
        """What is kept of the last batch, for each group of layers that share parameters.

        Raises:
            InexactError: Nothing is kept.
        """
        if not self._kept:
            raise InexactError("nothing is kept to assemble: call squared_norms without retain_graph first")
        return list(self._kept.values())

    def release(self) -> None:
        """Release everything kept of the last batch."""
        self._tape.uses, self._kept, self._layers = [], {}, {}

    def close(self) -> None:
        """Release, and remove the hooks from the model."""
        self.release()
        self._tape.remove()

    def _trainable_parameters(self) -> list[int]:
        return [id(parameter) for parameter in self._model.parameters() if parameter.requires_grad]

    def _layout(self, uses: Sequence[Use], logp: Tensor, segments: Tensor | Sequence[Tensor] | None) -> RowLayout:
        if segments is not None:
            return PackedLayout([segments] if isinstance(segments, Tensor) else list(segments))
        B = logp.shape[0]
        lengths = {use.shape[1:].numel() for use in uses if len(use.shape) > 1 and use.shape[0] == B}
        return RowLayout(B, lengths | {logp.shape[1:].numel()})

    def _check_once(self, uses: Sequence[Use], logp: Tensor, weights: Tensor, layout: RowLayout) -> bool:
        """Check the first batch of each combination of shapes; returns `first_suffice` for `capture.backward`."""
        kinds = tuple((use.layer.name, "broadcast" if use.path else layout.kind(use.shape)) for use in uses)
        if kinds not in self._checked:
            check_every_use_is_seen(self._model, uses, logp)
            self._checked[kinds] = check_rows_are_independent(uses, logp, weights, layout)
        return self._checked[kinds]

    def _collect(
        self,
        uses: Sequence[Use],
        logp: Tensor,
        weights: Tensor,
        layout: RowLayout,
        retain_graph: bool,
        first_suffice: bool,
    ) -> None:
        """Backpropagate; settle each group of layers as soon as all its uses have input and gradient."""
        members: dict[str, list[Use]] = defaultdict(list)
        for use in uses:
            members[self._groups[use.layer.name]].append(use)
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
                    use.inputs = use.gradient = None
            if sides:
                contribution = contribution_of(sides, keep=not retain_graph)
                self._layers[group] = contribution.squared()
                if not retain_graph:
                    self._kept[group] = contribution

        def complete(use: Use) -> None:
            group = self._groups[use.layer.name]
            if use.inputs is not None and use.gradient is not None:
                missing[group] -= 1
                if not missing[group]:
                    settle(group)

        with self._tape.replaying(complete) as arrived:
            backward(uses, logp, weights, arrived, retain_graph, first_suffice)
        for group in list(members):
            settle(group)
