"""Where a result comes from: code, libraries and machine, without names of people or folders."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import vcpo_bench
from vcpo_bench.bench.samplers.vllm_engine.releases import installed
from vcpo_bench.records.code_state import code_state

_LIBRARIES = ("torch", "numpy", "scipy", "pandas", "pyarrow", "transformers")


@cache
def provenance() -> dict[str, Any]:
    """Version and commit of this package, versions of the libraries, and the hardware, as JSON values."""
    return {
        "vcpo_bench": vcpo_bench.__version__,
        **code_state(),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES} | {"vllm": (installed() or ("", "absent"))[1]},
        "platform": platform.platform(terse=True),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def gpu(device: str) -> dict[str, str]:
    """`gpu`: model of the GPU with that name; empty for a CPU, or where the GPU does not answer."""
    if not device.startswith("cuda"):
        return {}
    try:
        return {"gpu": torch.cuda.get_device_name(device)}
    except (RuntimeError, AssertionError):  # the driver failed, or torch has no CUDA
        return {}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
