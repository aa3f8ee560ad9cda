"""The share of a group of layers in every trajectory's gradient, also where layers or uses share parameters."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from vcpo_bench.bench.score_norms.embedding import EmbeddingRule
from vcpo_bench.bench.score_norms.rules import HeadRule, LayerRule, inner_products, sum_squares, weighted_sum

Gradients = dict[nn.Parameter, Tensor]
Side = tuple[LayerRule, Any, Tensor]  # a rule with its a [B, T, ...] and b [B, T, ...]


class Contribution:
    """One layer's share of every trajectory's gradient: its inputs and output gradients, or small gradients themselves.

    Args:
        rule: The layer's rule.
        a: Input of the layer, [B, T, ...].
        b: Gradients with respect to its output, [B, T, ...].
        keep: Whether more than the squared norm will be needed.
    """

    def __init__(self, rule: LayerRule, a: Any, b: Tensor, keep: bool = True) -> None:
        self.rule = rule
        self._gradients = rule.per_row_if_small(a, b) if keep else None
        self._pair = (a, b) if self._gradients is None else None

    @property
    def nbytes(self) -> int:
        """Of what is held."""
        return sum(leaf.nbytes for leaf in tree_leaves((self._pair, self._gradients)) if isinstance(leaf, Tensor))

    def squared(self) -> Tensor:
        """[B] squared norms."""
        return self.rule.squared(*self._pair) if self._pair else sum_squares(self._gradients or [])

    def weighted(self, weights: Tensor) -> Gradients:
        """Sum over trajectories of weights[i] times the gradient, by parameter."""
        pair, small = self._pair, self._gradients or []
        sums = self.rule.weighted(*pair, weights) if pair else weighted_sum(small, weights)
        return dict(zip(self.rule.parameters, sums, strict=True))

    def inner(self) -> Tensor:
        """[B, B] inner products of the trajectories' gradients."""
        return self.rule.inner(*self._pair) if self._pair else inner_products(self._gradients or [])

    def per_row(self) -> Gradients:
        """The gradients [B, *shape], by parameter."""
        gradients = self.rule.per_row(*self._pair) if self._pair else self._gradients or []
        return dict(zip(self.rule.parameters, gradients, strict=True))


class SharedContribution(Contribution):
    """Parts that share parameters in any way: gradients are formed per trajectory and added before they are squared."""

    def __init__(self, parts: Sequence[Contribution]) -> None:
        self.parts = parts

    @property
    def nbytes(self) -> int:
        """Of what is held."""
        return sum(part.nbytes for part in self.parts)

    def squared(self) -> Tensor:
        """[B] squared norms."""
        return sum_squares(list(self.per_row().values()))

    def weighted(self, weights: Tensor) -> Gradients:
        """Sum over trajectories of weights[i] times the gradient, by parameter."""
        return added([part.weighted(weights) for part in self.parts])

    def inner(self) -> Tensor:
        """[B, B] inner products of the trajectories' gradients."""
        return inner_products(list(self.per_row().values()))

    def per_row(self) -> Gradients:
        """The gradients [B, *shape], by parameter."""
        return added([part.per_row() for part in self.parts])


class TiedContribution(SharedContribution):
    """An embedding and a head with one weight [V, d]: ||E + H||^2 = ||E||^2 + ||H||^2 + 2 <E, H>, nothing of size V d.

    Args:
        embedding: The rule, ids [B, U] and gradients [B, U, d] of the embedding.
        head: The rule, inputs and gradients of the head, whose rule knows <E, H>.
        keep: See `Contribution`.
    """

    def __init__(self, embedding: Side, head: Side, keep: bool = True) -> None:
        super().__init__([Contribution(*embedding, keep), Contribution(*head, keep)])
        self.embedding, self.head = embedding, head

    def squared(self) -> Tensor:
        """[B] squared norms."""
        rule, ids, e = self.embedding
        head, a, b = self.head
        assert isinstance(rule, EmbeddingRule)
        assert isinstance(head, HeadRule)
        cross = head.cross(a, b, ids, rule.counted(ids, e))
        return self.parts[0].squared() + self.parts[1].squared() + 2 * cross


def contribution_of(sides: Sequence[Side], keep: bool) -> Contribution:
    """The contribution of all uses of one layer, or of all layers that share parameters.

    Args:
        sides: At least one.
        keep: See `Contribution`.
    """
    joined = join_uses(sides) if len(sides) > 1 else sides
    if len(joined) == 1:
        return Contribution(*joined[0], keep)
    embeddings = [side for side in joined if isinstance(side[0], EmbeddingRule)]
    heads = [side for side in joined if isinstance(side[0], HeadRule) and side[0].is_plain]
    if len(joined) == 2 and embeddings and heads:
        return TiedContribution(embeddings[0], heads[0], keep)
    return SharedContribution([Contribution(*side, keep) for side in joined])


def join_uses(sides: Sequence[Side]) -> list[Side]:
    """Join the uses of the same layer along the position axis."""
    joined: list[Side] = []
    for rule in dict.fromkeys(side[0] for side in sides):
        same = [(a, b) for other, a, b in sides if other is rule]
        if len(same) == 1 or not rule.joinable:
            joined += [(rule, a, b) for a, b in same]
        else:
            joined.append((rule, torch.cat([a for a, _ in same], dim=1), torch.cat([b for _, b in same], dim=1)))
    return joined


def added(parts: Sequence[Gradients]) -> Gradients:
    """Add gradients parameter by parameter."""
    total: Gradients = {}
    for part in parts:
        for parameter, gradient in part.items():
            total[parameter] = total[parameter] + gradient if parameter in total else gradient
    return total
