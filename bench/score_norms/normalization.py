"""Normalisations with a gain, and a bias where there is one."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.score_norms.rules import Rule, working


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
        b = working(b)
        gradients = [(self.normalise(working(a)) * b).sum(1)] if self.has_gain else []
        return [*gradients, b.sum(1)] if self.has_bias else gradients

    def remembered(self, a: Tensor, b: Tensor) -> list[Tensor] | None:
        """See `Rule.remembered`."""
        return self.per_row(a, b)


def layer_norm(layer: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """A LayerNorm over the last axis without its gain and bias."""
    return lambda a: F.layer_norm(a, layer.normalized_shape, eps=layer.eps)


def rms_norm_rule(layer: nn.Module) -> GainRule | None:
    """The rule of a root-mean-square norm of any library, recognised by what it does rather than by its name.

    torch's, Llama's, Qwen's and T5's multiply with the weight, Gemma's with one plus the weight: the gradient is the
    same.

    Args:
        layer: owns one vector `weight` and stores its epsilon as `eps` or `variance_epsilon`.

    Returns:
        The rule, or None if the layer does something else to a random input.
    """
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, nn.Parameter) or weight.ndim != 1 or len(list(layer.parameters())) != 1:
        return None
    eps = getattr(layer, "variance_epsilon", getattr(layer, "eps", None))

    def normalise(a: Tensor) -> Tensor:
        floor = torch.finfo(a.dtype).eps if eps is None else eps
        return a * torch.rsqrt(a.square().mean(-1, keepdim=True) + floor)

    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        probe = torch.randn(2, 3, len(weight), generator=generator).mul_(0.01).to(weight)
        try:
            found = layer(probe)
        except (RuntimeError, TypeError, ValueError):  # it takes other arguments, so it is something else
            return None
        expected = normalise(working(probe))
        tolerance = 1e-2 if weight.dtype in (torch.bfloat16, torch.float16) else 1e-4
        gains = (working(weight), 1 + working(weight))
        is_known = isinstance(found, Tensor) and any(
            torch.allclose(working(found), gain * expected, rtol=tolerance, atol=tolerance) for gain in gains
        )
    return GainRule(weight, None, normalise) if is_known else None
