"""What every measurement of the GPU day shares: where it runs, how it is timed, and the JSON file it leaves."""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch

from vcpo_bench.files.atomic import replacing

T = TypeVar("T")
PACKAGES = ("torch", "transformers", "numpy", "pandas", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Setup:
    """Where the measurements run.

    Attributes:
        device: `cuda`, or `cpu` to prove that the code works.
        tiny: Sizes that take seconds on a CPU; the numbers mean nothing.
        work: Folder for what a measurement keeps between calls (models, results folders).
        seconds: What is left of this call.
    """

    device: str
    tiny: bool
    work: Path
    seconds: Callable[[], float]

    def pick(self, full: T, tiny: T) -> T:
        """The value for the size of this run."""
        return tiny if self.tiny else full


class Unfinished(Exception):  # noqa: N818 - not an error
    """The measurement used up this call's time; the same call continues it."""


Measure = Callable[[Setup], dict[str, Any]]


def record(name: str, stage: int, measure: Measure, setup: Setup, out: Path) -> str:
    """Carry out a measurement and write `stageN-NAME.json`; returns `ok`, `failed` or `unfinished`."""
    began = perf_counter()
    facts: dict[str, Any] = {"name": name, "stage": stage, "device": setup.device, "tiny": setup.tiny}
    try:
        facts |= {"status": "ok", "result": measure(setup)}
    except Unfinished as reason:
        facts |= {"status": "unfinished", "error": str(reason)}
    except Exception as error:  # whatever a driver or an engine raises is a result
        facts |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    facts |= {"seconds": round(perf_counter() - began, 2)} | machine()
    with replacing(path_of(out, stage, name)) as draft:
        draft.write_text(json.dumps(facts, indent=1, allow_nan=True))
    release(setup.device)
    return str(facts["status"])


def path_of(out: Path, stage: int, name: str) -> Path:
    """The file of a measurement."""
    return out / f"stage{stage}-{name}.json"


def machine() -> dict[str, Any]:
    """Hardware, versions and the date."""
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
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
    times = []
    for _ in range(repeats):
        synchronize(device)
        began = perf_counter()
        work()
        synchronize(device)
        times.append(perf_counter() - began)
    return min(times)


@contextmanager
def peak_memory(device: str) -> Iterator[dict[str, float]]:
    """`gib` of the dictionary is the peak of the block above what was held before; NaN on a CPU."""
    found = {"gib": float("nan")}
    if not device.startswith("cuda"):
        yield found
        return
    release(device)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    yield found
    found["gib"] = round((torch.cuda.max_memory_allocated() - held) / 2**30, 3)
