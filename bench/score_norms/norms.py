"""Exact squared norms of all trajectories' score gradients, and the gradient of the update, from one backward pass."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.audit import Sums, check_every_use_is_seen, check_rows_are_independent
from vcpo_bench.bench.score_norms.broadcast import with_broadcasts
from vcpo_bench.bench.score_norms.capture import LayerTape, Use
from vcpo_bench.bench.score_norms.collect import RecordedForward, collect
from vcpo_bench.bench.score_norms.errors import InexactError, NotBatchedError
from vcpo_bench.bench.score_norms.fallback import FallbackRule
from vcpo_bench.bench.score_norms.inspection import groups_of, layers_of, loose_parameters_of
from vcpo_bench.bench.score_norms.one_by_one import OneByOne
from vcpo_bench.bench.score_norms.row_layout import PackedLayout, RowLayout
from vcpo_bench.bench.score_norms.sharing import Contribution

Kinds = tuple[object, ...]


class ScoreNorms:
    """||grad log pi(y_i | x)||^2 of every trajectory of a batch, at nearly the cost of one backward pass.

    Hooks record the forward pass. One backward pass without parameter gradients yields every layer's output gradient.
    The norms follow layer by layer (`rules.LayerRule`), and so does the gradient of any loss with one coefficient per
    trajectory ("book-keeping"). Rows of the batch (axis 0) are trajectories that must not influence each other;
    otherwise `segments` says which positions belong together.

    The first batch of each combination of shapes is checked for causes of silently wrong norms (`audit`), which costs
    four more backward passes. Models that hooks cannot follow (mixtures of experts, state-space layers, parameters used
    outside their layer) take one backward pass per trajectory through the graph of the batch; a warning says so once.

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
        self._owners = {p: self._groups[each.name] for each in (*layers, *self._loose) for p in each.rule.parameters}
        self._fallbacks = [each.rule for each in layers if isinstance(each.rule, FallbackRule)]
        self._tape = LayerTape(layers)
        self._trainable = self._trainable_parameters()
        self._checked: dict[Kinds, bool] = {}
        self._batched, self._announced = True, False
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
            InexactError: Nothing was recorded, or trajectories influence each other.
        """
        uses = self._tape.uses
        if not uses or logp.grad_fn is None:
            raise InexactError("nothing was recorded: compute logp inside `with norms.record():`, with gradients on")
        weights = torch.ones_like(logp) if mask is None else mask.to(logp.dtype)
        recorded = RecordedForward(uses, logp, weights, self._layout(uses, logp, segments))
        try:
            if self._batched:
                self._pass_once(recorded, retain_graph)
        except NotBatchedError as reason:
            self._check_first(recorded)
            self._batched = False
            price = f"one backward pass per trajectory, {recorded.layout.count} for this batch"
            warnings.warn(f"score norms take {price}, which is exact but slower: {reason}", stacklevel=3)
        if not self._batched:
            self._pass_for_each(recorded, retain_graph)
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
        return gradient_of(self.contributions(), weights)

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

    def _trainable_parameters(self) -> list[object]:
        return [id(parameter) for parameter in self._model.parameters() if parameter.requires_grad]

    def _layout(self, uses: Sequence[Use], logp: Tensor, segments: Tensor | Sequence[Tensor] | None) -> RowLayout:
        if segments is not None:
            return PackedLayout([segments] if isinstance(segments, Tensor) else list(segments))
        B = logp.shape[0]
        lengths = {use.shape[1:].numel() for use in uses if len(use.shape) > 1 and use.shape[0] == B}
        return RowLayout(B, lengths | {logp.shape[1:].numel()})

    def _pass_once(self, recorded: RecordedForward, retain_graph: bool) -> None:
        """All norms from one backward pass.

        Raises:
            NotBatchedError: That is impossible; the graph is still there.
        """
        uses = with_broadcasts(recorded.uses, self._loose, recorded.logp, recorded.layout)
        recorded = recorded._replace(uses=uses)
        kinds = ("batched", *_kinds(recorded))
        first_suffice = self._checked[kinds] if kinds in self._checked else self._check(recorded)

        def receive(group: str, contribution: Contribution) -> None:
            self._layers[group] = contribution.squared()
            if not retain_graph:
                self._kept[group] = contribution

        collect(
            self._tape,
            self._groups,
            recorded,
            receive,
            keep=not retain_graph,
            retain_graph=retain_graph or bool(self._fallbacks),  # which may find that they cannot split an argument
            first_suffice=first_suffice,
        )
        self._remember(kinds, first_suffice)
        if self._fallbacks and not self._announced:
            self._announced = True
            names = sorted({type(rule.layer).__name__ for rule in self._fallbacks})
            warnings.warn(
                f"no score-norm rule for {', '.join(names)}: gradients are recomputed per trajectory with "
                "torch.func.vmap, which is exact but slower",
                stacklevel=4,
            )

    def _pass_for_each(self, recorded: RecordedForward, retain_graph: bool) -> None:
        """All norms from one backward pass per trajectory."""
        kinds = self._check_first(recorded)
        _, logp, weights, layout = recorded
        found = OneByOne(logp, weights, layout.trajectories(logp), layout.count, self._owners)
        self._layers = found.squared_by_group()
        self._kept = {} if retain_graph else {"": found}
        self._remember(kinds, True)

    def _check_first(self, recorded: RecordedForward) -> Kinds:
        """Check that no trajectory's log-probability depends on the input of another; returns what was checked.

        Raises:
            InexactError: One does, or the rows of the first layers are not trajectories.
        """
        uses = with_broadcasts(recorded.uses, (), recorded.logp, recorded.layout)
        first = recorded._replace(uses=[use for use in uses if not use.behind] or uses[:1])
        kinds = ("one by one", *_kinds(first))
        try:
            if kinds not in self._checked:
                check_rows_are_independent(first, bits=(recorded.layout.count - 1).bit_length())
        except NotBatchedError as error:
            raise InexactError(str(error)) from error
        return kinds

    def _check(self, recorded: RecordedForward) -> bool:
        """Check that all norms will be right; returns `first_suffice` for `capture.backward`.

        Raises:
            NotBatchedError: They will not.
        """
        check_every_use_is_seen(self._model, recorded.uses, recorded.logp)
        first_suffice = check_rows_are_independent(recorded)
        sums = Sums(self._model, recorded, {self._groups[layer.name] for layer in self._loose})
        collect(self._tape, self._groups, recorded, sums.receive, keep=False, retain_graph=True, retain_inputs=True)
        sums.finish()
        return first_suffice

    def _remember(self, kinds: Kinds, first_suffice: bool) -> None:
        """Check no more batches of these kinds, unless this one proved nothing for want of a finite gradient."""
        if kinds not in self._checked and 0 < float(torch.stack(list(self._layers.values())).sum()) < math.inf:
            self._checked[kinds] = first_suffice


@torch.no_grad()
def gradient_of(contributions: Sequence[Contribution], weights: Tensor) -> dict[nn.Parameter, Tensor]:
    """The sum over trajectories of weights[i] times the gradient, by parameter and in its dtype."""
    return {
        parameter: gradient.to(parameter.dtype)
        for contribution in reversed(contributions)  # the last ones are still in the CPU cache
        for parameter, gradient in contribution.weighted(weights).items()
    }


def _kinds(recorded: RecordedForward) -> Kinds:
    """What distinguishes batches that must be checked: the layers used, and how their tensors are read."""
    layout = recorded.layout
    return tuple((use.layer.name, "broadcast" if use.path else layout.kind(use.shape)) for use in recorded.uses)
