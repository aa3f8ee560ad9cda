"""The device a cell computes on: whether it is there, and what a cell leaves behind on it."""

from __future__ import annotations

import gc

import torch

from vcpo_bench.errors import UsageError


def checked_device(name: str) -> torch.device:
    """The device of that name.

    Raises:
        UsageError: this machine has no such device.
    """
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise UsageError(f"--device {name}: torch finds {count} CUDA devices here (vcpo-bench doctor); use cpu")
    return device


def release_memory(device: str) -> None:
    """Give a GPU's memory back after a cell.

    Hooks for score norms and their model hold each other, so that only the collector of cycles frees them, which may
    come after the next cell has loaded its own model. What torch keeps for itself would be missing to other processes
    on that GPU: other workers, or the sampler process of the next cell.
    """
    if device.startswith("cuda"):
        gc.collect()
        torch.cuda.empty_cache()
