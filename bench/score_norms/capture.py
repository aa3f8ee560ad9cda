"""Forward and backward hooks that capture layer inputs and output gradients."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from torch.utils import _pytree as pytree

from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.rules import LayerRule


@dataclass(eq=False)
class Layer:
    """A layer that owns trainable parameters.

    Attributes:
        name: Its name in the model.
        module: The layer.
        rule: Computes its gradients per trajectory.
        replayed: Activation checkpointing runs it again during the backward pass, so its input need not be kept.
    """

    name: str
    module: nn.Module
    rule: LayerRule
    replayed: bool = False


@dataclass(eq=False)
class Use:
    """One use of a layer in a recorded forward.

    Attributes:
        layer: The layer.
        inputs: Its input, as `LayerRule.read` keeps it; None if a replay will provide it.
        shape: The axes of rows and positions.
        edge: Edge of the autograd graph where the gradient of its output arrives.
        behind: Nodes of the graph that produced its input; empty if nothing trainable comes before it.
        output: Index of this output among the layer's outputs.
        gradient: Gradient of the output; None until it arrives.
        path: If the gradient is caught at a later node, the nodes from the layer's output up to that one.
    """

    layer: Layer
    inputs: Any
    shape: torch.Size
    edge: GradientEdge
    behind: tuple[Node, ...]
    output: int = 0
    gradient: Tensor | None = None
    path: tuple[Node, ...] = ()


class LayerTape:
    """Records every use of some layers through hooks."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.uses: list[Use] = []
        self._recording = False
        self._replay: Callable[[Use], None] | None = None
        self.layers = layers
        self._replays_seen = False
        self._handles = [
            layer.module.register_forward_hook(partial(self._note, layer), with_kwargs=True) for layer in layers
        ]

    def remove(self) -> None:
        """Remove the hooks from the model."""
        for handle in self._handles:
            handle.remove()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the uses in the forward passes inside the block, replacing earlier ones."""
        self.uses, self._recording = [], True
        try:
            yield
        finally:
            self._recording = False

    @contextmanager
    def replaying(self, complete: Callable[[Use], None]) -> Iterator[Callable[[Use], None]]:
        """Inside the block, layers run only because checkpointing replays them: their uses receive their inputs.

        Args:
            complete: Called with a use once it has its input.

        Yields:
            `complete`, wrapped so that it may run layers itself.
        """

        def alone(use: Use) -> None:
            self._replay = None
            complete(use)
            self._replay = alone

        self._recording, self._replay = False, alone
        try:
            yield alone
        finally:
            self._replay = None

    def _note(
        self, layer: Layer, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        if not self._recording:
            if self._replay is not None and not self._replays_seen:
                self._expect_replays()
            return
        if not torch.is_grad_enabled():
            raise InexactError(
                f"layer {layer.name!r} ran without gradients while recording: call the model outside torch.no_grad(), "
                "and use checkpointing with use_reentrant=False"
            )
        behind = tuple(
            get_gradient_edge(leaf).node
            for leaf in _leaves((*args, *kwargs.values()))
            if isinstance(leaf, Tensor) and leaf.requires_grad
        )
        for index, leaf in enumerate(_leaves(output)):
            if isinstance(leaf, Tensor) and leaf.requires_grad:
                inputs = layer.rule.read(args, kwargs, index)
                shape = layer.rule.shape(inputs, leaf)
                kept = None if layer.replayed else inputs
                self.uses.append(Use(layer, kept, shape, get_gradient_edge(leaf), behind, index))

    def _expect_replays(self) -> None:
        """A layer ran during a backward pass: from the next batch on, inputs that a replay provides are not kept."""
        self._replays_seen = True
        self._handles += [
            layer.module.register_forward_pre_hook(partial(self._note_replay, layer), with_kwargs=True)
            for layer in self.layers
        ]

    def _note_replay(self, layer: Layer, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._replay is None:
            return
        uses = [use for use in self.uses if use.layer is layer]
        layer.replayed = len(uses) == 1  # replays of several uses cannot be told apart
        for use in uses:
            if use.inputs is None:
                use.inputs = layer.rule.read(args, kwargs, use.output)
                self._replay(use)


def _leaves(tree: Any) -> Sequence[Any]:
    """The leaves of nested tuples, lists and dicts."""
    if isinstance(tree, Tensor):
        return (tree,)
    if isinstance(tree, tuple) and all(isinstance(leaf, Tensor) for leaf in tree):
        return tree
    return pytree.tree_leaves(tree)


class Arrivals:
    """The gradients of the outputs of some uses, which arrive in a backward pass in no particular order.

    Args:
        uses: The uses.
        arrived: Called with every use as soon as its gradient has arrived.
    """

    def __init__(self, uses: Sequence[Use], arrived: Callable[[Use], None]) -> None:
        self._waiting, self._arrived = set(uses), arrived

    def ask(self, logp: Tensor, weights: Tensor, uses: Sequence[Use], retain_graph: bool) -> None:
        """Request the gradients of some uses, which sends those of the uses on the way past the hooks.

        Args:
            logp: Differentiable log-probabilities.
            weights: Factor of each in the sum that is differentiated.
            uses: Whose gradients are requested.
            retain_graph: Keep the graph for another request.
        """
        edges = [use.edge for use in uses]
        with torch.enable_grad():  # the weights given to PyTorch would have it import sympy, for 0.8 s
            total = (logp * weights).sum()
        found = torch.autograd.grad(total, edges, retain_graph=retain_graph, allow_unused=True)
        for use, gradient in zip(uses, found, strict=True):  # the hook of a node that need not run is not called
            self._arrive(use, gradient)

    def catch(self, use: Use, gradients: Sequence[Tensor | None]) -> None:
        """Take the gradient of a use from those that reach its node: the hook of that node."""
        self._arrive(use, gradients[use.edge.output_nr])

    def missed(self, uses: Sequence[Use]) -> list[Use]:
        """Those whose gradients have not arrived."""
        return [use for use in uses if use in self._waiting]

    def _arrive(self, use: Use, gradient: Tensor | None) -> None:
        if gradient is not None and use in self._waiting:
            self._waiting.remove(use)
            use.gradient = gradient
            self._arrived(use)


def backward(
    uses: Sequence[Use],
    logp: Tensor,
    weights: Tensor,
    arrived: Callable[[Use], None],
    retain_graph: bool,
    first_suffice: bool = False,
) -> bool:
    """Backpropagate from the weighted sum of `logp`; no parameter gradient is computed.

    The first layers are those with nothing trainable before them. Every other layer lies on a path to one of them, so
    requesting the gradients of the first layers sends all gradients past the hooks, and no gradient lives longer than
    `arrived` keeps it. Uses missed that way, as when the model's inputs are differentiable, are requested directly.

    Args:
        uses: The uses recorded in the forward pass of `logp`.
        logp: Differentiable log-probabilities.
        weights: Factor of each element of `logp` in the sum, in its shape.
        arrived: Called with every use as soon as its gradient has arrived, in no particular order.
        retain_graph: Keep the graph for another backward pass.
        first_suffice: What an earlier pass of the same model returned. False is always correct, and takes more memory
            where the graph is not retained.

    Returns:
        Whether requesting the first layers brought all gradients.

    Raises:
        InexactError: A layer is used in another way than in that earlier pass.
    """
    arrivals = Arrivals(uses, arrived)
    handles = [use.edge.node.register_prehook(partial(arrivals.catch, use)) for use in uses]
    try:
        first = [use for use in uses if not use.behind] if retain_graph or first_suffice else []
        arrivals.ask(logp, weights, first or uses, retain_graph)
        missed = arrivals.missed(uses)
        if retain_graph and missed:
            arrivals.ask(logp, weights, missed, retain_graph)
        elif missed and first_suffice:
            raise InexactError(
                f"layer {missed[0].layer.name!r} is used in another way than before: create a new ScoreNorms"
            )
    finally:
        for handle in handles:
            handle.remove()
    return not missed
