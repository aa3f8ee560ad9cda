"""A layer of experts: a router picks k of E small perceptrons for every token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.policies.moe.grouped import GroupedLinear, assigned
from vcpo_bench.bench.policies.routed import UNROUTED


class Experts(nn.Module):
    """Router and experts of one layer: the k experts with the largest logits, weighted by the softmax over those k.

    An expert is a SwiGLU perceptron without biases, and runs on its own tokens only.

    Args:
        width: Size of the residual stream.
        inner: Hidden size of an expert.
        experts: E.
        active: k.
    """

    def __init__(self, width: int, inner: int, experts: int, active: int) -> None:
        super().__init__()
        self.active = active
        self.router = nn.Linear(width, experts, bias=False)
        self.up = GroupedLinear(width, 2 * inner, experts, shared=True)  # the gate's rows first
        self.down = GroupedLinear(inner, width, experts, shared=False)

    def forward(self, x: Tensor, routes: Tensor | None, noise: float = 0.0) -> tuple[Tensor, Tensor]:
        """Run the layer.

        Args:
            x: [B, L, width].
            routes: int8 [B, L, k], experts to use instead of the router's choice, `UNROUTED` where it chooses.
            noise: See `rounded_logits`.

        Returns:
            [B, L, width], and the experts used, int64 [B, L, k] in ascending order.
        """
        logits = rounded_logits(self.router(x), noise)
        chosen = choose(logits, self.active, routes)
        # gates come from the live logits, whoever chose: gradients reach the router of a replayed token, too
        gates = logits.gather(-1, chosen).softmax(-1)
        to = assigned(chosen, logits.shape[-1])
        gate, value = self.up(x, to).chunk(2, -1)
        done = self.down(F.silu(gate) * value, to).view(*chosen.shape, -1)
        return (done * gates.unsqueeze(-1)).sum(-2), chosen


def choose(logits: Tensor, active: int, routes: Tensor | None) -> Tensor:
    """The experts of every token: int64 [..., k] in ascending order, from logits [..., E] and recorded routes."""
    chosen = logits.detach().topk(active, -1).indices.sort(-1).values
    return chosen if routes is None else torch.where(routes > UNROUTED, routes.long(), chosen)


def expert_logp(logits: Tensor, chosen: Tensor) -> Tensor:
    """Log-probabilities of experts int64 [..., k] under the softmax of a router's logits [..., E], over all experts."""
    return logits.log_softmax(-1).gather(-1, chosen)


@contextmanager
def watched(layers: Sequence[Experts]) -> Iterator[list[Tensor]]:
    """Inside, the list holds what the router of each layer returned last: logits [B, L, E], no noise, no gradient."""
    seen = [torch.empty(0)] * len(layers)

    def watch(depth: int, _router: nn.Module, _inputs: object, logits: Tensor) -> None:
        seen[depth] = logits.detach()

    handles = [layer.router.register_forward_hook(partial(watch, depth)) for depth, layer in enumerate(layers)]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def rounded_logits(logits: Tensor, noise: float) -> Tensor:
    """Router logits [..., E] as a coarse engine computes them: on a grid of `noise` standard deviations.

    The unit is the standard deviation of a token's own logits over the experts, so that the share of changed choices
    does not depend on how sharp the router has become. Each expert has a grid of its own, shifted by a fixed amount:
    otherwise ties would favor the first experts. A function of the logits alone, so runs resume bit for bit.
    """
    if not noise:
        return logits
    step = noise * logits.std(-1, keepdim=True).clamp_min(1e-12)
    shift = (torch.arange(logits.shape[-1], device=logits.device, dtype=logits.dtype) * 0.6180339887).frac()
    return ((logits / step + shift).round() - shift) * step
