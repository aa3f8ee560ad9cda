"""Normalisations with a gain, and a bias where there is one."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.rules import Rule


class GainRule(Rule):
    """y_t = gain * normalise(a_t) + bias: the gradient is sum_t b_t * normalise(a_t) and sum_t b_t.

    Args:
        gain: [d], or None if there is none or it is frozen.
        bias: [d], or None if there is none or it is frozen.
        normalise: the layer without its gain and bias.
    """

    def __init__(
        self, gain: nn.Parameter | None, bias: nn.Parameter | None, normalise: Callable[[Tensor], Tensor]
    ) -> None:
        self.has_gain, self.has_bias = gain is not None, bias is not None
        self.normalise = normalise
        self.parameters = [parameter for parameter in (gain, bias) if parameter is not None]

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """See `Rule.per_row`."""
        gradients = [(self.normalise(a) * b).sum(1)] if self.has_gain else []
        return [*gradients, b.sum(1)] if self.has_bias else gradients

    def remembered(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `Rule.remembered`."""
        return self.per_row(a, b)


def layer_norm(layer: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """A LayerNorm over the last axis without its gain and bias."""
    return lambda a: F.layer_norm(a, layer.normalized_shape, eps=layer.eps)


def root_mean_square_norm(eps: float | None) -> Callable[[Tensor], Tensor]:
    """An RMSNorm over the last axis without its gain; `eps` None is the type's own."""

    def normalise(a: Tensor) -> Tensor:
        floor = torch.finfo(a.dtype).eps if eps is None else eps
        return a * torch.rsqrt(a.square().mean(-1, keepdim=True) + floor)

    return normalise
