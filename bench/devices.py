"""What a cell leaves behind on its device."""

from __future__ import annotations

import gc
from contextlib import suppress

import torch


def release_memory(device: str) -> None:
    """Give a GPU's memory back after a cell.

    Hooks for score norms and their model hold each other, so that only the collector of cycles frees them, which may
    come after the next cell has loaded its own model. What torch keeps for itself would be missing to other processes
    on that GPU: other workers, or the sampler process of the next cell.
    """
    if device.startswith("cuda"):
        gc.collect()
        with suppress(RuntimeError):  # after an error of the GPU: the process is about to be replaced
            torch.cuda.empty_cache()
