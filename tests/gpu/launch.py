"""One measurement in a process of its own, with a time limit: an error of the driver ends with its process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import carried
import ledger
from stages import Step

HERE = Path(__file__).parent
MARGIN = 10.0
"""Seconds before the end of its time that a measurement should stop by itself."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@dataclass(frozen=True)
class Place:
    """Where measurements of one kind run and leave their files; other sizes and devices have another.

    Attributes:
        device: As torch names it.
        tiny: See `kit.Setup`.
        folder: Holds the records, and `work`; see `kit.Setup`.
    """

    device: str
    tiny: bool
    folder: Path

    @classmethod
    def of(cls, device: str, tiny: bool, work: Path) -> Place:
        """The place, made where it is not there yet."""
        folder = work.resolve() / f"{device}{'-tiny' * tiny}"
        (folder / "work").mkdir(parents=True, exist_ok=True)
        carried.import_path(folder)  # makes its link, which measurements that begin together would make at once
        return cls("mock:0" if device == "mock" else device, tiny, folder)

    @property
    def name(self) -> str:
        """Name of its files at home."""
        return self.folder.name


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure(step: Step, stage: int, place: Place, left: float, beside: int = 1) -> str:
    """Carry out a measurement within the seconds that are left, one of `beside` that share the cores; its status."""
    path = ledger.path_of(place.folder, stage, step.name)
    kept = ledger.read(path).get("result", {})
    facts = {"name": step.name, "stage": stage, "device": place.device, "tiny": place.tiny}
    ledger.write(path, {**facts, "status": ledger.BEGUN, "result": kept})
    most = float("inf") if place.tiny else step.seconds
    seconds, began = min(most, left), perf_counter()
    ended, said = _run(step, path, place, seconds, beside)
    found = ledger.read(path)
    if found["status"] == ledger.BEGUN:  # it did not get to write how it ended
        short = not ended and left < most
        reason = f"stopped after {seconds:.0f} s" if not ended else f"the process died: {said}"
        more = {"status": "unfinished" if short else "failed", "error": reason, "seconds": perf_counter() - began}
        found |= more
        ledger.write(path, found)
    return str(found["status"])


def _run(step: Step, path: Path, place: Place, seconds: float, beside: int) -> tuple[bool, str]:
    """Whether the process ended by itself, and the end of what it printed."""
    job = {"entry": step.entry, "arguments": step.arguments, "path": str(path), "seconds": seconds - MARGIN}
    job |= {"device": place.device, "tiny": place.tiny, "folder": str(place.folder)}
    environment = os.environ | OFFLINE | carried.import_path(place.folder)
    environment |= {"OMP_NUM_THREADS": str(max(1, cores() // beside))} if beside > 1 else {}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "child.py"), json.dumps(job)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            _end(process)
        log.seek(0)
        return ended, " | ".join(log.read().strip().splitlines()[-4:])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started: what is left would use the device under the next measurement."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
