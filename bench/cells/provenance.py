"""Where a result comes from: code, libraries and machine, without names of people or folders."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import vcpo_bench
from vcpo_bench.bench.samplers.vllm_engine.releases import installed

_LIBRARIES = ("torch", "numpy", "scipy", "pandas", "pyarrow", "transformers")


@cache
def provenance() -> dict[str, Any]:
    """Version and commit of this package, versions of the libraries, and the hardware, as JSON values."""
    return {
        "vcpo_bench": vcpo_bench.__version__,
        **_code_state(Path(vcpo_bench.__file__).resolve().parent),
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


def _code_state(folder: Path) -> dict[str, Any]:
    """Commit that the package runs from or was built from, if known, and whether it had uncommitted changes."""
    if not (folder / ".git").exists():
        built = folder / "built_from.json"  # written by setup.py
        known = json.loads(built.read_text(encoding="utf-8")) if built.exists() else {}
        return {name: known.get(name) for name in ("commit", "uncommitted")}
    commit = _git(folder, "rev-parse", "HEAD")
    return {"commit": commit, "uncommitted": bool(_git(folder, "status", "--porcelain")) if commit else None}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
