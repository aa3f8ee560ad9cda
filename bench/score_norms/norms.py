"""Exact squared norms of trajectories' score gradients, and the update's gradient, from one batched backward."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.capture import Recorder, Use, backward
from vcpo_bench.bench.score_norms.inspection import InexactError, layers_of
from vcpo_bench.bench.score_norms.rows import by_row
from vcpo_bench.bench.score_norms.rules import Rule, sum_squares, weighted_sum


class Contribution:
    """One layer's share of every trajectory's gradient: the inputs and output gradients, or the small gradients
    themselves.

    Args:
        rule: the layer's rule.
        a: what it read, [B, T, ...].
        b: the gradients that reached what it returned, [B, T, ...].
    """

    def __init__(self, rule: Rule, a: Tensor, b: Tensor) -> None:
        self.rule = rule
        self.gradients = rule.remembered(a, b)
        self.pair = (a, b) if self.gradients is None else None

    def squared(self) -> Tensor:
        """[B] squared norms over the layer's parameters."""
        return self.rule.squared(*self.pair) if self.pair else sum_squares(self.gradients or [])

    def weighted(self, weights: Tensor) -> list[Tensor]:
        """Sum over trajectories of weights[i] times the gradient, per parameter of the rule."""
        return self.rule.weighted(*self.pair, weights) if self.pair else weighted_sum(self.gradients or [], weights)


class ScoreNorms:
    """||grad log pi(y_i | x)||^2 of every row of a batch, at nearly the price of one backward.

    The forward is recorded with hooks; one backward, which computes no parameter gradient, brings every layer's output
    gradient; the norms follow layer by layer (`Rule`), and so does the gradient of any loss whose coefficient is
    constant over each trajectory ("book-keeping"). Rows of the batch (axis 0) must be trajectories that do not influence
    each other.

    Args:
        model: its layers are inspected once; hooks stay on it until `close`.

    Raises:
        InexactError: a layer has no exact rule.
    """

    def __init__(self, model: nn.Module) -> None:
        layers = list(layers_of(model))
        owners: dict[nn.Parameter, str] = {}
        for name, _, rule in layers:
            for parameter in rule.parameters:
                if parameter in owners:
                    raise InexactError(f"layers {owners[parameter]!r} and {name!r} share a parameter")
                owners[parameter] = name
        self._recorder = Recorder(layers)
        self._kept: list[Contribution] | None = None
        self._layers: dict[str, Tensor] = {}

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the forward passes inside the block; what an earlier one left is released."""
        self.release()
        self._recorder.active = True
        try:
            yield
        finally:
            self._recorder.active = False

    @torch.no_grad()
    def squared_norms(self, logp: Tensor, mask: Tensor | None = None, *, retain_graph: bool = False) -> Tensor:
        """||grad sum_t mask_it logp_it||^2 over all trainable parameters, for every trajectory i.

        Args:
            logp: [B, T] (or [B]) log-probabilities computed inside `record`, differentiable.
            mask: the shape of `logp`, True where a token counts; all of them if None.
            retain_graph: False: keep what `assemble` needs and free the graph. True: keep the graph for a second
                backward (`logp.backward(-coefficients)`) and nothing else; `assemble` is then unavailable.

        Returns:
            [B] in the type of `logp`; `.grad` is not touched.

        Raises:
            InexactError: nothing was recorded, or a layer saw a shape in which trajectories cannot be told apart.
        """
        uses = self._recorder.uses
        if not uses:
            raise InexactError("nothing was recorded: compute logp inside `with norms.record():`")
        weights = torch.ones_like(logp) if mask is None else mask.to(logp.dtype)
        backward(uses, logp, weights, retain_graph)
        contributions = self._contributions(uses, logp)
        self._layers = {name: contribution.squared() for name, contribution in contributions.items()}
        self._kept = None if retain_graph else list(contributions.values())
        self._recorder.uses = []
        return torch.stack(list(self._layers.values())).sum(0)

    def layers(self) -> dict[str, Tensor]:
        """The squared norms of the last batch by layer: name -> [B]; their sum is `squared_norms`."""
        return self._layers

    def assemble(self, coefficients: Tensor) -> None:
        """Add the gradient of the loss, -sum_i coefficients[i] grad log pi(y_i|x), to `.grad` of every trainable
        parameter.

        Args:
            coefficients: [B], -dLoss/dlogp per token, constant over a trajectory's counted tokens.

        Raises:
            InexactError: nothing is kept: no batch was recorded, or its graph was retained instead.
        """
        for parameter, gradient in self.gradient(-coefficients).items():
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)

    @torch.no_grad()
    def gradient(self, weights: Tensor) -> dict[nn.Parameter, Tensor]:
        """sum_i weights[i] grad log pi(y_i|x), by parameter; `.grad` is not touched.

        Args:
            weights: [B].

        Raises:
            InexactError: nothing is kept.
        """
        if self._kept is None:
            raise InexactError("nothing is kept to assemble: call squared_norms without retain_graph first")
        return {
            parameter: gradient
            for kept in self._kept
            for parameter, gradient in zip(kept.rule.parameters, kept.weighted(weights), strict=True)
        }

    def release(self) -> None:
        """Let go of everything kept from the last batch."""
        self._recorder.uses, self._kept, self._layers = [], None, {}

    def close(self) -> None:
        """Release, and take the hooks off the model."""
        self.release()
        self._recorder.remove()

    def _contributions(self, uses: Sequence[Use], logp: Tensor) -> dict[str, Contribution]:
        """Layer by layer, with all uses of a layer side by side along the position axis."""
        B = logp.shape[0]
        lengths = {
            use.inputs.shape[1] for use in uses if use.rule.positions(use.inputs) > 1 and use.inputs.shape[0] == B
        }
        sides: dict[str, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        rules = {use.name: use.rule for use in uses}
        for use in uses:
            if use.gradient is not None:
                positions = use.rule.positions(use.inputs)
                a = by_row(use.inputs, positions, B, lengths)
                sides[use.name].append((a, by_row(use.gradient, positions, B, lengths)))
                use.gradient = None
        return {name: Contribution(rules[name], *side_by_side(pairs)) for name, pairs in sides.items()}


def side_by_side(pairs: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Join pairs [B, T_k, ...] along the position axis."""
    if len(pairs) == 1:
        return pairs[0]
    return torch.cat([a for a, _ in pairs], dim=1), torch.cat([b for _, b in pairs], dim=1)
