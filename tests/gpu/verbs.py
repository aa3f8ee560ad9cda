"""Commands of the suite as a measurement uses them: stopped in time, resumed by the next call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from kit import Ended, Failed, Result, Setup, Skipped, Unfinished

_MARGIN = 20.0
"""Seconds that a stopped command may take to leave its checkpoints."""
_EVERY = 0.5


def call(setup: Setup, *arguments: object) -> float:
    """Carry out a command; returns the most GiB of the GPU that were in use, by all processes (NaN on a CPU).

    Raises:
        Unfinished: The time was used up. `run` and `warmup` then resume from what they leave on the disk.
        Failed: It failed.
        Skipped: The device exists in this process only.
    """
    if setup.device.startswith("mock"):
        raise Skipped("the mock device exists in one process only, and a command is another one")
    words = list(map(str, arguments))
    command = [sys.executable, "-m", "vcpo_bench", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until, used = perf_counter() + max(1.0, setup.seconds() - _MARGIN), _used(setup.device)
    while True:
        try:
            said, _ = process.communicate(timeout=_EVERY)
            break
        except subprocess.TimeoutExpired:
            used = max(used, _used(setup.device))
        if perf_counter() > until:
            _stop(process)
            raise Unfinished(f"{words[0]} was stopped when the time was used up")
    if process.returncode:
        raise Failed(f"{words[0]} ended with {process.returncode}: {' | '.join(said.strip().splitlines()[-4:])}")
    return used


def run_grid(setup: Setup, folder: Path, summarize: Callable[[Path], Result], *flags: object) -> Result:
    """Train a grid and summarize it.

    `wall_seconds` adds up all calls, with the start of every process and the scoreboard; `gib` is the peak of the GPU
    in this call.

    Raises:
        Ended: It did not end well. The summary of what is there comes with it.
    """
    log = folder.with_suffix(".seconds.json")
    log.parent.mkdir(parents=True, exist_ok=True)
    spent: list[float] = json.loads(log.read_text()) if log.exists() else []
    began, used, problem = perf_counter(), float("nan"), None
    try:
        used = call(setup, "run", "--out", folder, "--quiet", "--no-controls", *flags)
    except Ended as error:
        problem = error
    spent.append(perf_counter() - began)
    log.write_text(json.dumps(spent))
    found = {"wall_seconds": round(sum(spent), 1), "calls": len(spent), "gib": used} | summarize(folder)
    if problem:
        raise type(problem)(str(problem), found) from problem
    return found


def ended_cells(folder: Path) -> list[dict[str, Any]]:
    """What the cells of a grid that have ended say of themselves."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("cells/*/cell.json"))]


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_MARGIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _used(device: str) -> float:
    """GiB in use on the whole GPU, by all processes."""
    if device == "cpu":
        return float("nan")
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30
