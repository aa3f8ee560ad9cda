"""Which layers of a model own trainable parameters, the rule for each, and which of them share parameters."""

from collections.abc import Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from vcpo_bench.bench.score_norms.broadcast import BroadcastRule
from vcpo_bench.bench.score_norms.capture import Layer
from vcpo_bench.bench.score_norms.embedding import EmbeddingRule, embedding_scale
from vcpo_bench.bench.score_norms.errors import InexactError
from vcpo_bench.bench.score_norms.fallback import FallbackRule
from vcpo_bench.bench.score_norms.linear import LinearRule
from vcpo_bench.bench.score_norms.normalization import GainRule, gain_rule, layer_norm
from vcpo_bench.bench.score_norms.rules import LayerRule, RuledLayer

WHOLE = (nn.MultiheadAttention, nn.RNNBase)  # they use weights of inner layers without calling those layers


def layers_of(model: nn.Module) -> list[Layer]:
    """The layers of a model that own trainable parameters, each with its rule.

    Layers without a rule have a `FallbackRule`.

    Raises:
        InexactError: A layer is compiled, sharded, or of a kind for which exact norms are impossible.
    """
    for name, module in model.named_modules():
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            raise InexactError(
                f"{name or 'the model'!r} is compiled, which hides its layers: pass the model as it was before"
            )
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "placements"):  # a DTensor
            raise InexactError(f"parameter {name!r} is sharded: unshard the model first, score norms need all of it")
    owners = {module: name for name, module in _owners(model, "")}
    return [Layer(name, module, rule_for(module) or FallbackRule(module)) for module, name in owners.items()]


def loose_parameters_of(model: nn.Module) -> list[Layer]:
    """Parameters owned directly by a module that contains layers, such as learned positions, each as a layer."""
    return [
        Layer(f"{name}.{key}".lstrip("."), module, BroadcastRule(parameter))
        for name, module in _containers(model, "")
        for key, parameter in module.named_parameters(recurse=False)
        if parameter.requires_grad
    ]


def _owners(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The smallest layers that own trainable parameters directly, and those that define a rule of their own."""
    if isinstance(module, RuledLayer):
        if module.score_norm_rule().parameters:
            yield name or "model", module
        return
    if not has_trainable(module):
        return
    if (has_trainable(module, recurse=False) and not is_container(module)) or isinstance(module, WHOLE):
        yield name or "model", module
    else:
        for child_name, child in module.named_children():
            yield from _owners(child, f"{name}.{child_name}".lstrip("."))


def _containers(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules that contain layers."""
    if is_container(module):
        yield name, module
        for child_name, child in module.named_children():
            yield from _containers(child, f"{name}.{child_name}".lstrip("."))


def is_container(module: nn.Module) -> bool:
    """Whether a module contains layers with trainable parameters."""
    return not isinstance(module, WHOLE) and any(has_trainable(child) for child in module.children())


def has_trainable(module: nn.Module, recurse: bool = True) -> bool:
    """Whether a module (or, if `recurse`, anything in it) owns a trainable parameter."""
    return any(parameter.requires_grad for parameter in module.parameters(recurse))


def rule_for(module: nn.Module) -> LayerRule | None:
    """The rule of one layer, None if there is none.

    Raises:
        InexactError: See `layers_of`.
    """
    if isinstance(module, RuledLayer):
        return module.score_norm_rule()
    forward = type(module).forward
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        return LinearRule(trainable(module.weight), trainable(module.bias))
    if isinstance(module, nn.Embedding):
        if module.scale_grad_by_freq or module.max_norm is not None or module.sparse:
            raise InexactError(
                "an Embedding with scale_grad_by_freq, max_norm or sparse has no score norm: turn it off"
            )
        scale = 1.0 if forward is nn.Embedding.forward else embedding_scale(module)
        weight = cast(nn.Parameter, module.weight)
        return None if scale is None else EmbeddingRule(weight, module.padding_idx, scale)
    if isinstance(module, nn.LayerNorm) and forward is nn.LayerNorm.forward and len(module.normalized_shape) == 1:
        return GainRule(trainable(module.weight), trainable(module.bias), layer_norm(module))
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training:
        raise InexactError(
            "batch normalization mixes trajectories, so that none has a gradient of its own: use LayerNorm, or eval()"
        )
    if type(module).__name__ == "Conv1D" and hasattr(module, "nf"):  # the layer of GPT-2 in transformers
        return LinearRule(trainable(module.weight), trainable(module.bias), transposed=True)
    return gain_rule(module)


def trainable(parameter: Tensor | nn.Module | None) -> nn.Parameter | None:
    """The parameter, or None if there is none or it is frozen."""
    return parameter if isinstance(parameter, nn.Parameter) and parameter.requires_grad else None


def groups_of(layers: Sequence[Layer]) -> dict[str, str]:
    """Group name of every layer name: layers that share a parameter form a group, their names joined with `+`."""
    groups: list[list[Layer]] = []
    for layer in layers:
        own = set(layer.rule.parameters)
        touching = [group for group in groups if any(own.intersection(other.rule.parameters) for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([*(member for group in touching for member in group), layer])
    return {layer.name: "+".join(member.name for member in group) for group in groups for layer in group}
