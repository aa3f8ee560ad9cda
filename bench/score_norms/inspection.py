"""Which layers of a model own trainable parameters, and by which rule each is treated."""

from collections.abc import Iterator
from typing import cast

from torch import Tensor, nn

from vcpo_bench.bench.score_norms.embedding import EmbeddingRule
from vcpo_bench.bench.score_norms.linear import LinearRule
from vcpo_bench.bench.score_norms.normalization import GainRule, layer_norm
from vcpo_bench.bench.score_norms.rules import Rule
from vcpo_bench.errors import UsageError


class InexactError(UsageError):
    """Exact score norms are impossible for this model or call; the message says why and what to do."""


def layers_of(model: nn.Module) -> Iterator[tuple[str, nn.Module, Rule]]:
    """Name, module and rule of every layer that owns a trainable parameter.

    Raises:
        InexactError: a layer has no rule.
    """
    for name, module in model.named_modules():
        if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
            rule = rule_for(module)
            if rule is None:
                raise InexactError(
                    f"layer {name or 'model'!r} ({type(module).__name__}) has no rule for exact score norms"
                )
            yield name, module, rule


def rule_for(module: nn.Module) -> Rule | None:
    """The rule of one layer, None if there is none.

    Raises:
        InexactError: an embedding with an option under which its gradient is not a plain sum over positions.
    """
    forward = type(module).forward
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        return LinearRule(trainable(module.weight), trainable(module.bias))
    if isinstance(module, nn.Embedding) and forward is nn.Embedding.forward:
        if module.scale_grad_by_freq or module.max_norm is not None or module.sparse:
            raise InexactError(
                "an Embedding with scale_grad_by_freq, max_norm or sparse has no exact score norm: turn it off"
            )
        return EmbeddingRule(cast(nn.Parameter, module.weight), module.padding_idx)
    if isinstance(module, nn.LayerNorm) and forward is nn.LayerNorm.forward and len(module.normalized_shape) == 1:
        return GainRule(trainable(module.weight), trainable(module.bias), layer_norm(module))
    return None


def trainable(parameter: Tensor | None) -> nn.Parameter | None:
    """The parameter, or None if there is none or it is frozen."""
    return parameter if isinstance(parameter, nn.Parameter) and parameter.requires_grad else None
