"""How a language model is cut: each block is a unit that is gathered and freed; all else is one, as it may be tied."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.errors import UsageError

ENTRANCES = ("score", "score_rows", "sample")
"""Methods of a policy that run its network."""


def shard(policy: CausalPolicy, mesh: DeviceMesh) -> None:
    """Spread the parameters of a policy over the devices of a mesh, block by block; from then on they are DTensors.

    Gradients are summed over processes, not averaged: each holds other trajectories of one loss. In a policy that
    computes in bfloat16 each trained matrix of a block is a unit of its own, gathered in bfloat16.

    Args:
        policy: With whole parameters, the same in every process, on any device.
        mesh: One-dimensional.

    Raises:
        UsageError: The model does not say what its blocks are.
    """
    # scores hold views, which nothing changes in place
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    for block in blocks_of(policy):
        for layer in block.modules() if policy.dtype != torch.float32 else ():
            if type(layer) is nn.Linear and layer.weight.requires_grad:
                fully_shard(layer, mesh=mesh, mp_policy=_gathered_in(policy.dtype))
        fully_shard(block, mesh=mesh)
    fully_shard(policy, mesh=mesh)
    for name in ENTRANCES:
        register_fsdp_forward_method(policy, name)
    for unit in units_of(policy):
        unit.set_gradient_divide_factor(1.0)
        unit.set_force_sum_reduction_for_comms(True)
    root = next(units_of(policy))
    root.set_reshard_after_backward(False, recurse=False)  # score norms read the head's weight once more


def _gathered_in(dtype: torch.dtype) -> MixedPrecisionPolicy:
    """Matrices travel as autocast reads them: half the bytes, the same numbers. Gradients are summed in float32."""
    return MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)


def blocks_of(policy: CausalPolicy) -> list[nn.Module]:
    """The repeated blocks of a policy's network.

    Raises:
        UsageError: The model does not say what they are.
    """
    names = set(getattr(policy.network, "_no_split_modules", None) or ())
    found = [module for module in policy.network.modules() if type(module).__name__ in names]
    if not found:
        raise UsageError(f"--shards: {type(policy.network).__name__} does not name its blocks; use --shards 1")
    return found


def units_of(policy: nn.Module) -> Iterator[FSDPModule]:
    """The units whose parameters are gathered together, the policy itself first."""
    return (module for module in policy.modules() if isinstance(module, FSDPModule))


def rest(policy: nn.Module) -> None:
    """Free gathered parameters, so that those registered are the sharded ones, which the optimizer knows."""
    for unit in units_of(policy):
        unit.reshard()


@contextmanager
def whole(policy: nn.Module) -> Iterator[None]:
    """Every process holds all parameters inside the block: it may run the network as often as it likes, on its own."""
    units = list(units_of(policy))
    for unit in units:
        unit.set_reshard_after_forward(False, recurse=False)
        unit.unshard()
    try:
        yield
    finally:
        for unit in units:
            unit.set_reshard_after_forward(True, recurse=False)
        rest(policy)
        units[0].set_reshard_after_forward(False, recurse=False)  # as it is by default: a backward pass begins with it
