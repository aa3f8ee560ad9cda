"""Processes that train one cell together, and what they exchange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

PATIENCE = timedelta(seconds=120)
"""Time after which a process that does not answer the others ends the run."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that train a cell together; valid inside `opened`.

    Attributes:
        rank: Rank of this process, from 0.
        count: Number of processes.
    """

    rank: int
    count: int

    @classmethod
    @contextmanager
    def opened(cls, store: Path, rank: int, count: int) -> Iterator[Ranks]:
        """Connect to the others; a process can hold one connection at a time.

        Args:
            store: File for the rendezvous, the same for all processes; must not exist before.
            rank: Rank of this process.
            count: Number of processes.

        Raises:
            torch.distributed.DistError: The others did not connect in time.
        """
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=count, timeout=PATIENCE)
        try:
            yield cls(rank, count)
        finally:
            dist.destroy_process_group()

    def gather(self, rows: Tensor) -> Tensor:
        """Concatenate the rows of all ranks, those of rank 0 first; every rank sends the same number."""
        sent = rows.to(torch.uint8) if rows.dtype is torch.bool else rows
        found = [torch.empty_like(sent) for _ in range(self.count)]
        dist.all_gather(found, sent.contiguous())
        return torch.cat(found).to(rows.dtype)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each parameter's gradient with its sum over the ranks, bit-identical on all of them."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        total = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(total)
        for gradient, piece in zip(gradients, torch.split(total, [each.numel() for each in gradients]), strict=True):
            gradient.copy_(piece.view_as(gradient))
