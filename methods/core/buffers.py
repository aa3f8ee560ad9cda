"""Reused memory for large intermediate tensors on a CPU.

A fresh tensor of some megabytes costs more in page faults than the arithmetic done on it. Buffers are per thread,
borrowed for one update and given back when it ends; nothing a method returns may live in one.
"""

import threading

import torch
from torch import Tensor

SMALLEST = 1 << 16
"""Elements below which a fresh tensor is as cheap."""
_MOST = 12


class _Pool(threading.local):
    def __init__(self) -> None:
        self.free: dict[torch.dtype, list[Tensor]] = {}


_POOL = _Pool()


def borrow(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """An uninitialized tensor, and the buffer to give back (None when it is a fresh one)."""
    size = shape.numel()
    if device.type != "cpu" or size < SMALLEST:
        return torch.empty(shape, dtype=dtype, device=device), None
    free = _POOL.free.setdefault(dtype, [])
    fitting = next((place for place, flat in enumerate(free) if size <= flat.numel() <= 4 * size), None)
    flat = free.pop(fitting) if fitting is not None else torch.empty(size, dtype=dtype)
    return flat[:size].view(shape), flat


def give_back(buffers: list[Tensor]) -> None:
    """Make borrowed buffers available again, the newest first, and forget the oldest beyond a dozen."""
    for flat in buffers:
        free = _POOL.free.setdefault(flat.dtype, [])
        free.insert(0, flat)
        del free[_MOST:]
