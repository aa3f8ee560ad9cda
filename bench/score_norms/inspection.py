"""Which layers of a model own trainable parameters, by which rule each is treated, and which of them share."""

import warnings
from collections.abc import Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from vcpo_bench.bench.score_norms.capture import Layer
from vcpo_bench.bench.score_norms.embedding import EmbeddingRule
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.fallback import FallbackRule
from vcpo_bench.bench.score_norms.linear import LinearRule
from vcpo_bench.bench.score_norms.normalization import GainRule, layer_norm, rms_norm_rule
from vcpo_bench.bench.score_norms.rules import Rule

WHOLE = (nn.MultiheadAttention, nn.RNNBase)  # they use the weights of layers inside them without calling those


def layers_of(model: nn.Module) -> list[Layer]:
    """The layers of a model that own trainable parameters, each with its rule.

    A layer without a rule is recomputed per trajectory; a warning says so once for every type.

    Raises:
        InexactError: a layer is of a kind for which exactness is impossible.
    """
    layers, unknown = [], set()
    for name, module in _owners(model, ""):
        rule = rule_for(module)
        if rule is None:
            unknown.add(type(module).__name__)
            rule = FallbackRule(module)
        layers.append(Layer(name, module, rule))
    if unknown:
        warnings.warn(
            f"no score-norm rule for {', '.join(sorted(unknown))}: recomputed per trajectory with torch.func.vmap, which "
            "is exact but slower",
            stacklevel=3,
        )
    return layers


def _owners(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The smallest layers that own trainable parameters directly."""
    if any(parameter.requires_grad for parameter in module.parameters(recurse=False)) or isinstance(module, WHOLE):
        if any(parameter.requires_grad for parameter in module.parameters()):
            yield name or "model", module
        return
    for child_name, child in module.named_children():
        yield from _owners(child, f"{name}.{child_name}".lstrip("."))


def rule_for(module: nn.Module) -> Rule | None:
    """The rule of one layer, None if there is none.

    Raises:
        InexactError: see `layers_of`.
    """
    forward = type(module).forward
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        return LinearRule(trainable(module.weight), trainable(module.bias))
    if isinstance(module, nn.Embedding) and forward is nn.Embedding.forward:
        if module.scale_grad_by_freq or module.max_norm is not None or module.sparse:
            raise InexactError(
                "an Embedding with scale_grad_by_freq, max_norm or sparse has no score norm: turn it off"
            )
        return EmbeddingRule(cast(nn.Parameter, module.weight), module.padding_idx)
    if isinstance(module, nn.LayerNorm) and forward is nn.LayerNorm.forward and len(module.normalized_shape) == 1:
        return GainRule(trainable(module.weight), trainable(module.bias), layer_norm(module))
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
        raise InexactError(
            "batch normalisation mixes trajectories: no trajectory has a gradient of its own; use LayerNorm"
        )
    if type(module).__name__ == "Conv1D" and hasattr(module, "nf"):  # of transformers, used by GPT-2
        return LinearRule(trainable(module.weight), trainable(module.bias), transposed=True)
    return rms_norm_rule(module)


def trainable(parameter: Tensor | nn.Module | None) -> nn.Parameter | None:
    """The parameter, or None if there is none or it is frozen."""
    return parameter if isinstance(parameter, nn.Parameter) and parameter.requires_grad else None


def sites_of(layers: Sequence[Layer]) -> dict[Layer, str]:
    """The group each layer belongs to: layers that share a parameter, named by joining their names with +."""
    groups: list[list[Layer]] = []
    for layer in layers:
        own = set(layer.rule.parameters)
        touching = [group for group in groups if any(own.intersection(other.rule.parameters) for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([*(member for group in touching for member in group), layer])
    return {layer: "+".join(member.name for member in group) for group in groups for layer in group}
