"""The gradient of a micro-batch from what its score norms left, in place of a second forward and backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.norms import gradient_of
from vcpo_bench.bench.score_norms.sharing import Contribution


class Kept(NamedTuple):
    """What the score norms of a micro-batch left.

    Attributes:
        contributions: Of all layers.
        logp: `[B, T]` log-probabilities, without gradient.
    """

    contributions: Sequence[Contribution]
    logp: Tensor


class Budget:
    """Which micro-batches of an optimizer step keep what their norms left: memory decides.

    The micro-batch that is trained first always does: it is scored last, and what it keeps was in memory while its
    norms were measured. Others do while all they keep is no larger than the trained weights.
    """

    def __init__(self, trainer: Any) -> None:
        model = trainer.model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._allowed = sum(parameter.nbytes for parameter in self.parameters)
        self._used = 0
        # DDP reduces only what went through its forward pass; float16 gradients need their loss scale on the way
        plain = trainer.accelerator.num_processes == 1 and not trainer.args.fp16
        self.possible = plain and not _drops(model)

    def start(self) -> None:
        """A new optimizer step."""
        self._used = 0

    def admits(self, contributions: Sequence[Contribution], first: bool) -> bool:
        """Whether to keep these, and count them; `first`: of the micro-batch that is trained first."""
        size = sum(contribution.nbytes for contribution in contributions)
        if not self.possible or not (first or self._used + size <= self._allowed):
            return False
        self._used += size
        return True


def row_weights(coefficients: Tensor, mask: Tensor) -> Tensor | None:
    """`[B]` the coefficient of each row, or None where tokens of one row have different ones."""
    inside = torch.where(mask, coefficients, torch.nan)
    low, high = (inside.nan_to_num(nan=fill).flatten(1) for fill in (torch.inf, -torch.inf))
    least, most = low.amin(1), high.amax(1)
    empty = ~mask.any(1)
    if not bool((empty | (least == most)).all()):
        return None
    return torch.where(empty, 0.0, most)


def loss_from(kept: Kept, coefficients: Tensor, mask: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor | None:
    """`-sum c log pi` of one micro-batch, whose backward pass hands out the gradient that is known already.

    Args:
        kept: What the norms left.
        coefficients: `[B, T]`.
        mask: `[B, T]` bool, the tokens that the norms were of.
        parameters: All that are trained.

    Returns:
        None where the coefficients differ between tokens of a row: the norms know whole rows only.
    """
    weights = row_weights(coefficients, mask)
    if weights is None:
        return None
    value = -(coefficients * torch.where(mask, kept.logp, 0.0)).sum()
    return _Known.apply(value, kept.contributions, weights, *parameters)  # type: ignore[no-untyped-call,no-any-return]


class _Known(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, value: Tensor, contributions: Sequence[Contribution], weights: Tensor, *parameters: nn.Parameter
    ) -> Tensor:
        ctx.known = contributions, weights, parameters
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        contributions, weights, parameters = ctx.known
        del ctx.known
        with torch.autocast(weights.device.type, enabled=False):
            found = gradient_of(contributions, -weights * upstream[0])
        return (None, None, None, *(found.get(parameter) for parameter in parameters))


def _drops(model: nn.Module) -> bool:
    """Whether training differs from scoring by dropout."""
    settings = vars(model.config) if hasattr(model, "config") else {}
    shares = [value for name, value in settings.items() if name.endswith(("dropout", "pdrop"))]
    shares += [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    return any(shares)
