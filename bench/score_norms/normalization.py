"""Normalizations with a gain, and a bias where there is one."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from vcpo_bench.bench.score_norms.rules import Rule, working


class GainRule(Rule):
    """y_t = gain * normalize(a_t) + bias: the gradient is sum_t b_t * normalize(a_t) and sum_t b_t.

    Args:
        gain: [d], or None if there is none or it is frozen.
        bias: [d], or None if there is none or it is frozen.
        normalize: The layer without its gain and bias.
    """

    def __init__(
        self, gain: nn.Parameter | None, bias: nn.Parameter | None, normalize: Callable[[Tensor], Tensor]
    ) -> None:
        self.has_gain, self.has_bias = gain is not None, bias is not None
        self.normalize = normalize
        self.parameters = [parameter for parameter in (gain, bias) if parameter is not None]

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """See `Rule.per_row`."""
        b = working(b)
        gradients = [(self.normalize(a) * b).sum(1)] if self.has_gain else []
        return [*gradients, b.sum(1)] if self.has_bias else gradients

    def remembered(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `Rule.remembered`."""
        return self.per_row(a, b)


def layer_norm(layer: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """A LayerNorm over the last axis without its gain and bias."""

    def normalize(a: Tensor) -> Tensor:
        a = working(a)
        one, zero = torch.ones_like(a[0, 0]), torch.zeros_like(a[0, 0])  # on a CPU it is faster with them than without
        return F.layer_norm(a, layer.normalized_shape, one, zero, layer.eps)

    return normalize


def gain_rule(layer: nn.Module) -> GainRule | None:
    """The rule of any layer that multiplies with its one vector: the root-mean-square norms of all libraries.

    It is recognized by what it does to random numbers rather than by its name: its result must be (weight + constant)
    times something that does not depend on the weight. Llama's, Qwen's and T5's norms have the constant 0, Gemma's 1.
    That something, including its rounding, is then what the layer returns with another weight.

    Args:
        layer: Any.

    Returns:
        The rule, or None if the layer does something else.
    """
    found = list(layer.named_parameters())
    if len(found) != 1 or found[0][1].ndim != 1:
        return None
    name, weight = found[0]

    def run(value: Tensor, x: Tensor) -> Tensor:
        result: Tensor = functional_call(layer, {name: value}, (x,))
        return result

    generator = torch.Generator().manual_seed(0)
    x, first, second = (torch.randn(3, len(weight), generator=generator).to(weight) for _ in range(3))
    zero, one = torch.zeros_like(weight), torch.ones_like(weight)
    with torch.no_grad():
        try:
            offset, unit = run(zero, x), run(one, x)
            linear = [(run(value, x), offset + value * (unit - offset)) for value in (*first, *second)]
        except (RuntimeError, TypeError, ValueError, AttributeError):  # it takes or returns something else
            return None
        tolerance = 100 * max(torch.finfo(weight.dtype).eps, torch.finfo(torch.float32).eps)
        if not all(torch.allclose(got, wanted, rtol=tolerance, atol=tolerance) for got, wanted in linear):
            return None
        constant = 0.0 if not offset.any() else 1.0
        if constant and not torch.allclose(unit, 2 * offset, rtol=tolerance, atol=tolerance):
            return None
    return GainRule(weight, None, lambda a: run(torch.full_like(weight, 1 - constant), a))
