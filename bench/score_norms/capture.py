"""Keeping what the layers read, and catching the gradients that reach what they returned."""

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
from vcpo_bench.bench.score_norms.rules import Rule


@dataclass(eq=False)
class Layer:
    """A layer that owns trainable parameters.

    Attributes:
        name: In the model.
        module: The layer.
        rule: How its gradients follow.
        replayed: Activation checkpointing runs it again during the backward, so that its input need not be kept.
    """

    name: str
    module: nn.Module
    rule: Rule
    replayed: bool = False


@dataclass(eq=False)
class Use:
    """One use of a layer in a recorded forward.

    Attributes:
        layer: Which one.
        inputs: What it read; None if a replay will bring it.
        shape: The axes that count rows and positions.
        edge: The place in the autograd graph where the gradient of what it returned arrives.
        behind: The places in the graph where what it read came from; empty if nothing trainable comes before it.
        output: Which of the layer's results this is.
        gradient: What arrived; None until then.
        path: If the gradient is caught further on, the nodes from there back to what the layer returned.
    """

    layer: Layer
    inputs: Any
    shape: torch.Size
    edge: GradientEdge
    behind: tuple[Node, ...]
    output: int = 0
    gradient: Tensor | None = None
    path: tuple[Node, ...] = ()


class Recorder:
    """Hooks on layers that note every use.

    Args:
        layers: To watch.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.uses: list[Use] = []
        self._recording = False
        self._replay: Callable[[Use], None] | None = None
        self._layers = layers
        self._replays_seen = False
        self._handles = [
            layer.module.register_forward_hook(partial(self._note, layer), with_kwargs=True) for layer in layers
        ]

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self._handles:
            handle.remove()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Note the uses in the forward passes inside the block, in place of earlier ones."""
        self.uses, self._recording = [], True
        try:
            yield
        finally:
            self._recording = False

    @contextmanager
    def replaying(self, complete: Callable[[Use], None]) -> Iterator[Callable[[Use], None]]:
        """Inside the block layers run only because checkpointing replays them: their uses get their inputs.

        Args:
            complete: Called with a use that got its input.

        Yields:
            `complete`, made safe to run layers itself.
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
                f"layer {layer.name!r} ran without a gradient while recording: call the model outside torch.no_grad(), "
                "and checkpoint with use_reentrant=False"
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
        """A layer ran during a backward: from the next batch on, inputs that a replay brings again are not kept."""
        self._replays_seen = True
        self._handles += [
            layer.module.register_forward_pre_hook(partial(self._note_replay, layer), with_kwargs=True)
            for layer in self._layers
        ]

    def _note_replay(self, layer: Layer, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._replay is None:
            return
        uses = [use for use in self.uses if use.layer is layer]
        layer.replayed = len(uses) == 1  # which replay belongs to which of several uses is unknown: keep their inputs
        for use in uses:
            if use.inputs is None:
                use.inputs = layer.rule.read(args, kwargs, use.output)
                self._replay(use)


def _leaves(tree: Any) -> Sequence[Any]:
    """Everything in nested tuples, lists and dicts."""
    if isinstance(tree, Tensor):
        return (tree,)
    if isinstance(tree, tuple) and all(isinstance(leaf, Tensor) for leaf in tree):
        return tree
    return pytree.tree_leaves(tree)


def backward(
    uses: Sequence[Use],
    logp: Tensor,
    weights: Tensor,
    arrived: Callable[[Use], None],
    retain_graph: bool,
    first_suffice: bool = False,
) -> bool:
    """Send `weights` back from `logp`; no parameter gradient is computed.

    What lies behind other layers is on a path to the first ones, those that nothing trainable comes before: asking for
    the gradients of these brings all of them past the hooks, and holds none longer than `arrived` does. Uses that are
    missed, as when the model is given differentiable inputs, are asked for themselves.

    Args:
        uses: Of the forward that made `logp`.
        logp: Differentiable.
        weights: What each element of `logp` is multiplied with before summing; the shape of `logp`.
        arrived: Called with every use that a gradient reached, as soon as it did, in no particular order.
        retain_graph: Keep the graph for another backward.
        first_suffice: What an earlier backward of the same model returned; False is always right, and takes more memory
            where the graph is not retained.

    Returns:
        Whether asking for the first layers brought all gradients.
    """
    waiting = set(uses)

    def arrive(use: Use, gradient: Tensor | None) -> None:
        if gradient is not None and use in waiting:
            waiting.remove(use)
            use.gradient = gradient
            arrived(use)

    def ask(asked: Sequence[Use], retain_graph: bool) -> None:
        edges = [use.edge for use in asked]
        found = torch.autograd.grad(logp, edges, weights, retain_graph=retain_graph, allow_unused=True)
        for use, gradient in zip(asked, found, strict=True):  # a node that need not run does not call its hook
            arrive(use, gradient)

    def catch(use: Use, gradients: Sequence[Tensor | None]) -> None:
        arrive(use, gradients[use.edge.output_nr])

    handles = [use.edge.node.register_prehook(partial(catch, use)) for use in uses]
    try:
        first = [use for use in uses if not use.behind] if retain_graph or first_suffice else []
        ask(first or uses, retain_graph)
        missed = [use for use in uses if use in waiting]
        if retain_graph and missed:
            ask(missed, retain_graph)
        elif missed and first_suffice:
            raise InexactError(
                f"layer {missed[0].layer.name!r} is used in another way than before: make a new ScoreNorms"
            )
    finally:
        for handle in handles:
            handle.remove()
    return not missed
