"""The cores and the memory of this machine, and whether a number of worker processes fits into them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from vcpo_bench.bench.regimes import Regime

WORKER_GIB = 0.6
"""Memory of a worker that trains a stack of ten cells of the built-in tiny policy: mostly torch itself."""


def memory_warning(workers: int, regimes: Iterable[Regime]) -> str:
    """The line to show before a grid starts with more workers than this machine has cores or memory for; else empty.

    Args:
        workers: Number of worker processes asked for.
        regimes: Regimes of the grid; under some of them every worker has a sampler process beside it.
    """
    each = WORKER_GIB * (2 if any(regime.needs_process for regime in regimes) else 1)
    needed, free, cores = workers * each, available_gib(), available_cores()
    if workers <= cores and (free is None or needed <= free):
        return ""
    room = "" if free is None else f", and {free:.1f} GiB are available"
    return (
        f"--jobs {workers}: {cores} CPU cores; the workers take about {needed:.1f} GiB of memory{room}. Where "
        "memory runs out, the system kills workers"
    )


def available_cores() -> int:
    """CPU cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def available_gib() -> float | None:
    """Memory in GiB that new processes may take, on this machine or in this container; None where it is not known."""
    limits = [value for value in (_of_machine(), _of_container()) if value is not None]
    return min(limits) / 2**30 if limits else None


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None


def _of_container(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        limit = int((group / "memory.max").read_text())
        return limit - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no such file, or no limit, which reads `max`
        return None
