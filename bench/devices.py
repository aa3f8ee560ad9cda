"""Devices and memory: whether a device exists, what is free on it, what a cell leaves there, what malloc keeps."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import torch

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # M_* in glibc's malloc.h


def checked_device(name: str) -> torch.device:
    """The device with this name.

    Args:
        name: `cpu`, `cuda` or `cuda:N`.

    Raises:
        UsageError: This machine has no such device.
    """
    count = 0 if not name.startswith("cuda") or _no_driver() else torch.cuda.device_count()
    if name.startswith("cuda") and int(name.partition(":")[2] or 0) >= count:
        raise UsageError(f"--device {name}: this machine has {count} CUDA devices; use cpu")
    return torch.device(name)


def multiplies_bfloat16(device: str) -> bool:
    """Whether the device has instructions for it: a CPU without them may be forty times slower than with float32."""
    if not device.startswith("cpu"):
        return True
    found = torch.cpu.get_capabilities()
    return any(found.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"))


def _no_driver() -> bool:
    """Whether no GPU can be there, which is known without waiting for torch."""
    if "torch" in sys.modules or not sys.platform.startswith("linux"):
        return False
    if Path("/dev/kfd").exists():  # AMD's, whose devices are "cuda", too
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return True
    return False


def release_memory(device: str) -> None:
    """Return a GPU's memory to the driver after a cell.

    A model and the score-norm hooks on it reference each other, so only Python's cycle collector frees them, possibly
    after the next cell has loaded its own model. Memory that torch caches for itself is not available to other
    processes on the same GPU: other workers, or the sampler process of the next cell.

    Args:
        device: Device of the cell; nothing is done for `cpu`.
    """
    if device.startswith("cuda"):
        gc.collect()
        with suppress(RuntimeError):  # after a GPU error the process is about to be replaced
            torch.cuda.empty_cache()


def free_gpu_memory() -> int | None:
    """Free bytes of the fullest GPU, asked without a context on it; None where that cannot be asked."""
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
        return 2**20 * min(map(int, answer.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def keep_freed_memory() -> bool:
    """Tell glibc's malloc to reuse freed memory instead of returning it to the system after each use.

    Training allocates and frees tensors of a few megabytes thousands of times a second. A freed block of more than
    128 kB may be unmapped, and the next one then costs a page fault per 4 kB. Measured: 2 percent of the time of a
    plain update of the tiny policy, 11 percent of one with score norms. Call once per worker process. Peak memory is
    unchanged; memory between updates stays at the peak.

    Returns:
        Whether the allocator accepted the settings; False on systems without glibc, where nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 1 << 24}
    return all(mallopt(parameter, value) == 1 for parameter, value in settings.items())
