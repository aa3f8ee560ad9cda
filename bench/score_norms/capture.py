"""Keeping what the layers read, and the gradients that reach what they returned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from vcpo_bench.bench.score_norms.inspection import InexactError
from vcpo_bench.bench.score_norms.rules import Rule


@dataclass(eq=False)
class Use:
    """One use of a layer in a recorded forward.

    Attributes:
        name: the layer's name in the model.
        rule: the layer's rule.
        inputs: what the layer read.
        edge: the place in the autograd graph where the gradient of what it returned arrives.
        first: whether nothing trainable comes before the layer, so that a backward must be told to go as far as here.
        gradient: what arrived, None until then (and for good if the result does not depend on this use).
    """

    name: str
    rule: Rule
    inputs: Tensor
    edge: GradientEdge
    first: bool
    gradient: Tensor | None = None


class Recorder:
    """Hooks on layers that note every use while `active`.

    Args:
        layers: name, module, rule.
    """

    def __init__(self, layers: Sequence[tuple[str, nn.Module, Rule]]) -> None:
        self.active = False
        self.uses: list[Use] = []
        self.handles = [module.register_forward_hook(self._hook(name, rule)) for name, module, rule in layers]

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str, rule: Rule) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def note(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            if not self.active:
                return
            if not torch.is_grad_enabled() or not output.requires_grad:
                raise InexactError(
                    f"layer {name!r} ran without a gradient while recording: call the model outside torch.no_grad(), "
                    "and checkpoint with use_reentrant=False"
                )
            inputs: Tensor = args[0]
            first = inputs.grad_fn is None
            self.uses.append(Use(name, rule, inputs.detach(), get_gradient_edge(output), first))

        return note


def backward(uses: Sequence[Use], logp: Tensor, weights: Tensor, retain_graph: bool) -> None:
    """Send `weights` back from `logp` into every use's `gradient`; no parameter gradient is computed.

    Args:
        uses: of the forward that made `logp`.
        logp: differentiable.
        weights: what each element of `logp` is multiplied with before summing; the shape of `logp`.
        retain_graph: keep the graph for another backward.
    """
    edges = [use.edge for use in uses]
    arrived = torch.autograd.grad(logp, edges, weights, retain_graph=retain_graph, allow_unused=True)
    for use, gradient in zip(uses, arrived, strict=True):
        use.gradient = gradient
