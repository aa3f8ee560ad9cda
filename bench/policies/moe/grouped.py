"""Linear layers of which every token uses some: each weight is multiplied by its own tokens only."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.errors import NotBatchedError
from vcpo_bench.bench.score_norms.linear import gram
from vcpo_bench.bench.score_norms.row_layout import RowLayout
from vcpo_bench.bench.score_norms.rules import LayerRule, RuledLayer, at_least_float32


class Assignment(NamedTuple):
    """Which expert computes what. A pair is a token with one of its k experts; pairs count tokens first.

    Attributes:
        chosen: int64 [B, L, k], the experts of every token.
        pairs: For every expert the numbers of its pairs in [B * L * k], int64, ascending.
        tokens: For every expert the numbers of its tokens in [B * L], in the order of `pairs`.
    """

    chosen: Tensor
    pairs: tuple[Tensor, ...]
    tokens: tuple[Tensor, ...]


def assigned(chosen: Tensor, experts: int) -> Assignment:
    """Sort the pairs of chosen experts, int64 [B, L, k], by expert."""
    flat = chosen.flatten()
    counts = torch.bincount(flat, minlength=experts).tolist()
    order = flat.argsort(stable=True)
    tokens = order.div(chosen.shape[-1], rounding_mode="floor")
    return Assignment(chosen, torch.split(order, counts), torch.split(tokens, counts))


class GroupedLinear(RuledLayer):
    """E linear layers without biases.

    Args:
        inputs: d.
        outputs: p.
        experts: E.
        shared: The input has one row per token, for all its experts, and not one per pair.
    """

    def __init__(self, inputs: int, outputs: int, experts: int, shared: bool) -> None:
        super().__init__()
        self.shared = shared
        # one parameter each: an optimizer that treats matrices sees E of them
        self.weights = nn.ParameterList(torch.empty(outputs, inputs) for _ in range(experts))

    def forward(self, x: Tensor, to: Assignment) -> Tensor:
        """[B, L, d] if shared, else [B, L * k, d] -> [B, L * k, p]; pairs of a token stand side by side."""
        done: Tensor = _Grouped.apply(  # type: ignore[no-untyped-call]
            x.flatten(0, 1), to.tokens if self.shared else to.pairs, to.pairs, *self.weights
        )
        return done.view(x.shape[0], -1, done.shape[-1])

    def score_norm_rule(self) -> GroupedRule:
        """See `RuledLayer`."""
        return GroupedRule(self)


class _Grouped(torch.autograd.Function):
    """Rows `sources[e]` of x [N, d] times weight e [p, d], put into rows `pairs[e]` of [M, p].

    Written out, because autograd's gradient of a gather on a CPU adds rows one at a time.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sources: tuple[Tensor, ...], pairs: tuple[Tensor, ...], *weights: Tensor
    ) -> Tensor:
        ctx.sources, ctx.pairs = sources, pairs
        ctx.save_for_backward(x, *weights)
        out = x.new_empty(sum(map(len, pairs)), weights[0].shape[0])
        for weight, source, pair in zip(weights, sources, pairs, strict=True):
            out.index_copy_(0, pair, x.index_select(0, source) @ weight.t())
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, *weights = ctx.saved_tensors
        per_pair = x.new_empty(len(gradient), x.shape[1])
        found = list[Tensor | None]()
        for weight, source, pair, wanted in zip(weights, ctx.sources, ctx.pairs, ctx.needs_input_grad[3:], strict=True):
            part = gradient.index_select(0, pair)
            per_pair.index_copy_(0, pair, part @ weight)
            found.append(part.t() @ x.index_select(0, source) if wanted else None)
        return per_pair.view(len(x), -1, x.shape[1]).sum(1), None, None, *found


class GroupedRule(LayerRule):
    """The gradient of a trajectory with respect to weight e is the sum of b_n a_n^T over the pairs n of expert e.

    Its squared norm, over all experts, is the sum over pairs n, m of the trajectory with the same expert of
    (b_n . b_m) (a_n . a_m): no gradient is formed. Here `a` is the input with the assignment, `b` is [B, L * k, p].

    Args:
        layer: Its weights are trained.
    """

    joinable = False

    def __init__(self, layer: GroupedLinear) -> None:
        self.layer = layer
        self.parameters = [weight for weight in layer.weights if weight.requires_grad]

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: int) -> tuple[Tensor, Assignment]:
        """See `LayerRule.read`; keeps the input and the assignment."""
        x, to = args
        return x.detach(), to

    def arrange(self, inputs: Any, gradient: Tensor, shape: torch.Size, layout: RowLayout) -> tuple[Any, Tensor]:
        """See `LayerRule.arrange`.

        Raises:
            NotBatchedError: A row holds several trajectories.
        """
        if layout.kind(shape) != "rows":
            raise NotBatchedError("experts have score norms only where each row is one trajectory")
        return inputs, gradient

    def squared(self, a: tuple[Tensor, Assignment], b: Tensor) -> Tensor:
        """See `LayerRule.squared`."""
        x, to = a
        expert = to.chosen.flatten(1)
        outputs = gram(b) * (expert.unsqueeze(1) == expert.unsqueeze(2))
        B, L, k = to.chosen.shape
        if self.layer.shared:
            outputs = outputs.view(B, L, k, L, k).sum((2, 4))
        return (outputs * gram(x)).sum((1, 2))

    def per_row(self, a: tuple[Tensor, Assignment], b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        (x, to), b = a, at_least_float32(b)
        x = at_least_float32(x).repeat_interleave(to.chosen.shape[2] if self.layer.shared else 1, 1)
        expert = to.chosen.flatten(1).unsqueeze(-1)
        each = ((b * (expert == e)).transpose(1, 2) @ x for e in self._trained())
        return list(each)

    def weighted(self, a: tuple[Tensor, Assignment], b: Tensor, weights: Tensor) -> list[Tensor]:
        """See `LayerRule.weighted`."""
        (x, to), b = a, at_least_float32(b)
        scaled = (b * weights.to(b.dtype)[:, None, None]).flatten(0, 1)
        x, sources = at_least_float32(x).flatten(0, 1), to.tokens if self.layer.shared else to.pairs
        return [scaled.index_select(0, to.pairs[e]).t() @ x.index_select(0, sources[e]) for e in self._trained()]

    def _trained(self) -> list[int]:
        return [e for e, weight in enumerate(self.layer.weights) if weight.requires_grad]
