"""The gradient of one update where every process holds a shard of each parameter's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from vcpo_bench.bench.sharding.ranks import Ranks
from vcpo_bench.bench.training.gradients import FlatGradient, dot


class ShardedGradient(FlatGradient):
    """A `GradientView` whose vectors are this process's share; numbers are those of the whole.

    Args:
        module: The policy.
        head: Its output head.
        previous: This process's share of the last update's gradient; None at the first.
        ranks: The processes.
    """

    def __init__(self, module: nn.Module, head: nn.Module, previous: Tensor | None, ranks: Ranks) -> None:
        self.flat = torch.cat([local(p.grad).flatten() for p in module.parameters() if p.grad is not None])
        self.previous = previous
        self._head, self._ranks = head, ranks

    @cached_property
    def head(self) -> Tensor | None:
        """`[D_head]` gradient of the output head alone, whole; None where the head is frozen."""
        found = [cast(DTensor, p.grad).full_tensor().flatten() for p in self._head.parameters() if p.grad is not None]
        return torch.cat(found) if found else None

    @property
    def finite(self) -> bool:
        """Whether every component of every process's share is."""
        return self._ranks.agree(super().finite)

    @cached_property
    def dots(self) -> tuple[float, float, float]:
        """See `FlatGradient.dots`: sums over the processes."""
        if self.previous is None:
            return math.nan, math.nan, math.nan
        pairs = ((self.flat, self.flat), (self.flat, self.previous), (self.previous, self.previous))
        own = torch.tensor([dot(*pair) for pair in pairs], dtype=torch.float64)
        first, second, third = self._ranks.total(own).tolist()
        return first, second, third


def local(tensor: Tensor | None) -> Tensor:
    """This process's shard of a DTensor, in its memory."""
    return cast(DTensor, tensor).to_local()


def joined(share: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """`[D]` the whole of a vector, parameter after parameter, from the share of every process.

    Args:
        share: Shards of tensors like the parameters, flattened, one after the other.
        parameters: DTensors.
    """
    pieces = torch.split(share, [local(one).numel() for one in parameters])
    found = []
    for one, piece in zip(parameters, pieces, strict=True):
        mesh = cast(DTensor, one).device_mesh
        shard = piece.view_as(local(one))
        whole = DTensor.from_local(shard, mesh, [Shard(0)], shape=one.shape, stride=one.stride())
        found.append(whole.full_tensor().flatten().cpu())
    return torch.cat(found)


def shared(whole: Tensor | None, parameters: Sequence[nn.Parameter]) -> Tensor:
    """This process's share of a vector `[D]` that process 0 has; the others pass None."""
    sizes, begin, found = [one.numel() for one in parameters], 0, []
    for one, size in zip(parameters, sizes, strict=True):
        mesh = cast(DTensor, one).device_mesh
        piece = torch.empty(one.shape) if whole is None else whole[begin : begin + size].view(one.shape)
        placed = distribute_tensor(piece.to(one.device), mesh, [Shard(0)], src_data_rank=0)
        found.append(local(placed).flatten())
        begin += size
    return torch.cat(found)
