"""Normalization layers with a gain and, possibly, a bias."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from vcpo_bench.bench.score_norms.rules import LayerRule, at_least_float32


class GainRule(LayerRule):
    """y_t = gain * normalize(a_t) + bias: the gradient is sum_t b_t * normalize(a_t) and sum_t b_t.

    Args:
        gain: [d], or None if there is none or it is frozen.
        bias: [d], or None if there is none or it is frozen.
        normalize: The layer without gain and bias.
    """

    def __init__(
        self, gain: nn.Parameter | None, bias: nn.Parameter | None, normalize: Callable[[Tensor], Tensor]
    ) -> None:
        self.has_gain, self.has_bias = gain is not None, bias is not None
        self.normalize = normalize
        self.parameters = [parameter for parameter in (gain, bias) if parameter is not None]

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """See `LayerRule.per_row`."""
        b = at_least_float32(b)
        gradients = [(self.normalize(a) * b).sum(1)] if self.has_gain else []
        return [*gradients, b.sum(1)] if self.has_bias else gradients

    def per_row_if_small(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `LayerRule.per_row_if_small`."""
        return self.per_row(a, b)


def layer_norm(layer: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """A LayerNorm over the last axis, without gain and bias."""

    def normalize(a: Tensor) -> Tensor:
        a = at_least_float32(a)
        one, zero = torch.ones_like(a[0, 0]), torch.zeros_like(a[0, 0])  # faster on a CPU than without them
        return F.layer_norm(a, layer.normalized_shape, one, zero, layer.eps)

    return normalize


def gain_rule(layer: nn.Module) -> GainRule | None:
    """The rule of any layer that scales by its single vector, as the root-mean-square norms of all libraries do.

    Such layers are recognized by their effect on random numbers, not by name: the output must be (weight + constant)
    times a factor that does not depend on the weight. The constant is 0 for Llama, Qwen and T5, and 1 for Gemma. The
    factor, with its rounding, is then the layer's output for the weight that makes weight + constant equal to 1.

    Returns:
        The rule; None if the layer does something else.
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
        except Exception:  # it takes or returns something else, and may raise anything
            return None
        tolerance = 100 * max(torch.finfo(weight.dtype).eps, torch.finfo(torch.float32).eps)
        if not all(torch.allclose(got, wanted, rtol=tolerance, atol=tolerance) for got, wanted in linear):
            return None
        constant = 0.0 if not offset.any() else 1.0
        if constant and not torch.allclose(unit, 2 * offset, rtol=tolerance, atol=tolerance):
            return None
    return GainRule(weight, None, lambda a: run(torch.full_like(weight, 1 - constant, device=a.device), a))
