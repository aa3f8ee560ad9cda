"""The processes that train one cell together, and what they tell each other."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from vcpo_bench.bench.devices import checked_device

HOST = "127.0.0.1"


def meeting_place(count: int, port: int = 0) -> TCPStore:
    """Where the processes of a cell meet: opened by process 0 at a free port, reached by the others at that port.

    It listens on this machine alone; a `TCPStore` that opens its own port is open to the network.

    Args:
        count: Number of processes.
        port: Where it is; 0: open it.
    """
    if port:
        return TCPStore(HOST, port, count, is_master=False, wait_for_workers=False)
    here = socket.create_server((HOST, 0))
    port = here.getsockname()[1]
    return TCPStore(HOST, port, count, is_master=True, wait_for_workers=False, master_listen_fd=here.detach())


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of a cell as one of them sees them.

    Attributes:
        number: Its number, 0 for the one that writes.
        count: Number of processes.
        mesh: Their devices, in one dimension.
    """

    number: int
    count: int
    mesh: DeviceMesh

    @classmethod
    def join(cls, store: TCPStore, number: int, count: int, device: str) -> Ranks:
        """Meet the other processes; each must call it.

        Args:
            store: Where they meet.
            number: Number of this process.
            count: Number of processes.
            device: `cpu`, `cuda`, or `cuda:N`, the GPU of process 0; the others take those that follow.

        Raises:
            UsageError: There is no such GPU.
        """
        kind, _, first = device.partition(":")
        if kind == "cuda":
            own = checked_device(f"cuda:{int(first or 0) + number}")
            torch.cuda.set_device(own)
        # what is exchanged in main memory goes through gloo also where GPUs talk through NCCL
        backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, store=store, rank=number, world_size=count)
        return cls(number, count, init_device_mesh(kind, (count,)))

    def gather(self, mine: Tensor) -> Tensor:
        """Every process's tensor, one after the other along the first axis; all have the same shape.

        Args:
            mine: `[N, ...]`, in main memory.

        Returns:
            `[count * N, ...]`.
        """
        found = [torch.empty_like(mine) for _ in range(self.count)]
        dist.all_gather(found, mine.contiguous())
        return torch.cat(found)

    def gather_rows(self, mine: Tensor, rows: Sequence[int]) -> Tensor:
        """As `gather`, where process i has `rows[i]` rows.

        Args:
            mine: `[rows[number], ...]`, in main memory.
            rows: Number of rows of every process.
        """
        most = max(rows)
        padded = torch.cat([mine, mine.new_zeros(most - len(mine), *mine.shape[1:])])
        parts = torch.split(self.gather(padded), most)
        return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])

    def total(self, values: Tensor) -> Tensor:
        """Sums over processes of numbers in main memory."""
        found = values.clone()
        dist.all_reduce(found)
        return found

    def agree(self, own: bool) -> bool:
        """Whether it holds in every process."""
        return int(self.total(torch.tensor(int(own)))) == self.count
