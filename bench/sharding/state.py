"""A sharded policy and its optimizer as whole tensors, under the names that an unsharded learner gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from vcpo_bench.bench.feeding.source import under

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)
_FROM_FIRST = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, ignore_frozen_params=True, strict=False)


def whole_state(policy: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Weights and optimizer, gathered into the main memory of process 0; empty elsewhere. All must call it.

    Args:
        policy: Sharded.
        optimizer: Of its trained parameters.
    """
    names = _trained(policy)
    weights: Any = get_model_state_dict(policy, options=_WHOLE)
    found: dict[str, Tensor] = {f"policy/{name}": weights[name] for name in names if name in weights}
    if not optimizer.state:  # before the first step; asking for it would make one
        return found
    states: Any = get_optimizer_state_dict(policy, optimizer, options=_WHOLE).get("state", {})
    for index, name in enumerate(names):
        found |= {f"optimizer/{index}/{key}": value for key, value in states.get(name, {}).items()}
    return found


def load_sharded(policy: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], has: bool) -> None:
    """Load what `whole_state` returned in process 0, which sends every other one its shards. All must call it.

    Args:
        policy: Sharded.
        optimizer: Of its trained parameters.
        tensors: By name; others are ignored. Only process 0 needs the large ones.
        has: Whether this is process 0.

    Raises:
        KeyError: The names are not those of this policy.
    """
    names = _trained(policy)
    weights: dict[str, Any] = {**under(dict(tensors), "policy/")} if has else {}
    if has and (wrong := set(names) ^ weights.keys()):
        raise KeyError(f"not the weights of this policy: {sorted(wrong)[:3]}")
    set_model_state_dict(policy, weights, options=_FROM_FIRST)
    states: dict[str, dict[str, Tensor]] = {}
    for place, tensor in (under(dict(tensors), "optimizer/") if has else {}).items():
        index, _, key = place.partition("/")
        states.setdefault(names[int(index)], {})[key] = tensor
    groups = [{**group, "params": names} for group in optimizer.param_groups]
    whole: dict[str, Any] = {"state": states, "param_groups": groups} if has else {}
    set_optimizer_state_dict(policy, optimizer, whole, options=_FROM_FIRST)


def _trained(policy: nn.Module) -> list[str]:
    """Names of the trained parameters, in the order of the optimizer."""
    return [name for name, parameter in policy.named_parameters() if parameter.requires_grad]
