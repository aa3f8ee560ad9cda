"""What every measurement of the GPU day shares: where it runs, how it ends, and how it is timed."""

from __future__ import annotations

import gc
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch
from launch import cores

T = TypeVar("T")
Result = dict[str, Any]
PACKAGES = ("torch", "transformers", "numpy", "pandas", "pyarrow")
FLOOR = 1e-4
"""Added to the size that a difference is compared with, so that two results of zero are equal."""


@dataclass(frozen=True)
class Setup:
    """Where a measurement runs.

    Attributes:
        device: `cuda`; `cpu` or `mock:0` to prove that the code works.
        tiny: Sizes that take seconds on a CPU; the numbers mean nothing.
        work: Folder that stays on the machine between calls (models, runs).
        seconds: What is left for this measurement in this call.
        keep: Takes what is known so far; it is the result if the process dies.
    """

    device: str
    tiny: bool
    work: Path
    seconds: Callable[[], float]
    keep: Callable[[Result], None] = lambda result: None

    def pick(self, full: T, tiny: T) -> T:
        """The value for the size of this run."""
        return tiny if self.tiny else full


class Ended(Exception):  # noqa: N818 - not always an error
    """The measurement ended otherwise than well; `result` is what is known all the same."""

    status = "failed"

    def __init__(self, reason: str, result: Result | None = None) -> None:
        super().__init__(reason)
        self.result = result or {}


class Failed(Ended):
    """Something is wrong; the next call tries again, after all others."""


class Unfinished(Ended):
    """The time is used up; the same call continues."""

    status = "unfinished"


class Skipped(Ended):
    """It cannot be measured here, and no call changes that."""

    status = "skipped"


Measure = Callable[..., Result]


def machine() -> Result:
    """Hardware, versions and the date."""
    found: Result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": cores(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
    }
    if torch.cuda.is_available():
        facts = torch.cuda.get_device_properties(0)
        found |= {"gpu": facts.name, "gpu_gib": round(facts.total_memory / 2**30, 1), "cuda": torch.version.cuda}
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _commit() -> str:
    with suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    return "unknown"


def said(problem: BaseException) -> str:
    """An error in one line."""
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0] if lines else ''}"


def relative(gap: float, size: float) -> float:
    """A difference relative to the size of what is compared; NaN where either is."""
    return gap / (size + FLOOR)


def broken(device: str) -> bool:
    """Whether every further operation on the device would fail: some CUDA errors last until the process ends."""
    try:
        synchronize(device)
    except RuntimeError:
        return True
    return False


def release(device: str) -> None:
    """Free what a measurement left."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def synchronize(device: str) -> None:
    """Wait for the device: a GPU's work is queued."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def fastest(device: str, work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of some runs, after one that is not timed."""
    work()
    return min(seconds_of(device, work) for _ in range(repeats))


def seconds_of(device: str, work: Callable[[], object]) -> float:
    """Seconds of one run, to the end of the device's work."""
    synchronize(device)
    began = perf_counter()
    work()
    synchronize(device)
    return perf_counter() - began


def launched(device: str, work: Callable[[], object]) -> dict[str, int]:
    """Kernels that one run launches, and how often it waits for the GPU; on a CPU, operations that would."""
    from torch.profiler import ProfilerActivity, profile

    activities, names = [ProfilerActivity.CPU], {"launches": ("aten::",), "waits": ("aten::item", "aten::nonzero")}
    if device.startswith("cuda"):
        activities.append(ProfilerActivity.CUDA)
        names = {"launches": ("cudaLaunchKernel", "cuLaunchKernel"), "waits": ("cudaStreamSynchronize",)}
    with profile(activities=activities) as seen:
        work()
    found = seen.key_averages()
    return {kind: sum(each.count for each in found if each.key.startswith(of)) for kind, of in names.items()}


@contextmanager
def peak_memory(device: str) -> Iterator[dict[str, float]]:
    """GiB of the block: its `peak`, and how far that is `above` what was held before; NaN on a CPU."""
    found = {"peak": float("nan"), "above": float("nan")}
    if not device.startswith("cuda"):
        yield found
        return
    release(device)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    yield found
    most = torch.cuda.max_memory_allocated()
    found |= {"peak": round(most / 2**30, 3), "above": round((most - held) / 2**30, 3)}
