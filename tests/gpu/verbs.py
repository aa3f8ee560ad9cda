"""Commands of the suite as a measurement uses them: stopped in time, resumed by the next call."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import torch
from kit import Setup, Unfinished

_MARGIN = 15.0  # seconds that a stopped run needs to leave its checkpoints
_EVERY = 0.5


def call(setup: Setup, *arguments: object) -> float:
    """Carry out a command, such as `run`; returns the most GiB of the GPU that were in use (NaN on a CPU).

    Raises:
        Unfinished: It was stopped when this call's time was used up; it resumes.
        RuntimeError: It failed.
    """
    words = list(map(str, arguments))
    command = [sys.executable, "-m", "vcpo_bench", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until, used = perf_counter() + max(1.0, setup.seconds() - _MARGIN), float("nan")
    while True:
        try:
            said, _ = process.communicate(timeout=_EVERY)
            break
        except subprocess.TimeoutExpired:
            used = max(_used(setup.device), 0.0 if used != used else used)
        if perf_counter() > until:
            process.terminate()
            process.communicate()
            raise Unfinished(f"{words[0]} was stopped when the time was used up")
    if process.returncode:
        raise RuntimeError(f"{words[0]} ended with {process.returncode}: {' | '.join(said.strip().splitlines()[-4:])}")
    return used


def run_grid(setup: Setup, folder: Path, *flags: object) -> dict[str, float]:
    """Train a grid. `seconds` adds up all calls that it took; `gib` is the peak of this call."""
    log = folder.with_suffix(".seconds.json")
    log.parent.mkdir(parents=True, exist_ok=True)
    earlier: list[float] = json.loads(log.read_text()) if log.exists() else []
    began = perf_counter()
    try:
        used = call(setup, "run", "--out", folder, "--quiet", "--no-controls", *flags)
    finally:
        log.write_text(json.dumps([*earlier, perf_counter() - began]))
    return {"seconds": sum(earlier) + perf_counter() - began, "gib": used, "calls": len(earlier) + 1}


def _used(device: str) -> float:
    """GiB in use on the whole GPU, by all processes."""
    if device == "cpu":
        return float("nan")
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30
