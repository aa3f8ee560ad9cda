"""A small grid run by a launcher in a process of its own, and the bits it leaves."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
from patience import within

GRID = ["--methods", "vcpo,clip", "--staleness", "2", "--seeds", "1", "--task", "walk-eos", "--no-controls"]
SIZE = ["--prompts", "4", "--responses", "4", "--keep-checkpoints", "every=10"]
LEASE_SECONDS = 12


def start(out: Path, *more: str, steps: int = 100, checkpoint_seconds: int = 0) -> subprocess.Popen[str]:
    """The command in a process group of its own, with a checkpoint at every update and a short lease."""
    environment = {
        **os.environ,
        "VCPO_BENCH_CHECKPOINT_SECONDS": str(checkpoint_seconds),
        "VCPO_BENCH_LEASE_SECONDS": str(LEASE_SECONDS),
        "OMP_NUM_THREADS": "1",
    }
    arguments = ["-m", "vcpo_bench", "run", *GRID, *SIZE, "--steps", str(steps), "--out", str(out), *more]
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0, seconds: float = 400) -> str:
    """What the command printed, once it has ended with that exit code."""
    try:
        printed, _ = process.communicate(timeout=within(seconds))
    finally:
        process.kill()  # in vain, unless it took too long
    assert process.returncode == code, printed
    return printed


def read_until(process: subprocess.Popen[str], said: str) -> None:
    """Read what the command prints up to a line with that text; `finish` returns the rest."""
    assert process.stdout is not None
    read = []
    for line in process.stdout:
        read.append(line)
        if said in line:
            return
    raise AssertionError(f"it ended without saying {said!r}: {''.join(read)}")


def wait_for(what: str, happened: Callable[[], object], seconds: float = 200) -> None:
    deadline = time.monotonic() + within(seconds)
    while not happened():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)


def half_way(out: Path, updates: int = 2) -> list[Path]:
    """Newest checkpoints of cells that have done so many updates and have not ended."""
    found = sorted((out / "cells").glob("*.partial/checkpoint-*"))
    return [path for path in found if int(path.name.rpartition("-")[2]) >= updates]


def newest_checkpoints(out: Path) -> dict[str, int]:
    """Update of the newest checkpoint of each cell that has one and has not ended, by key."""
    found: dict[str, int] = {}
    for path in half_way(out, 0):
        key, update = path.parent.name.removesuffix(".partial"), int(path.name.rpartition("-")[2])
        found[key] = max(update, found.get(key, update))
    return found


def digest(out: Path) -> dict[str, str]:
    """Hash of every number of every ended cell, wall-clock times aside, and of the kept weights."""
    found = {}
    for path in sorted((out / "cells").rglob("*.parquet")):
        table = pq.read_table(path)
        columns = [name for name in table.column_names if not name.startswith("seconds")]
        found[str(path.relative_to(out))] = repr(table.select(columns).to_pydict())
    for path in sorted((out / "cells").rglob("*.safetensors")):
        found[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def ended(out: Path) -> list[str]:
    """Keys of the cells that have ended."""
    return sorted(path.parent.name for path in (out / "cells").glob("*[!l]/cell.json"))


def workers_of(out: Path) -> list[int]:
    """Process numbers of the workers that run cells."""
    pids = living_workers(out)
    assert pids, "no cell is running"
    return pids


def living_workers(out: Path) -> list[int]:
    """Process numbers of the workers that run cells, if there are any."""
    from vcpo_bench.files.claims import claimed

    found = [claimed(path) for path in sorted((out / "cells").glob("*.partial"))]
    return [one.holder.pid for one in found if one and not one.holder.is_gone]


def send(signal_number: signal.Signals, pids: Collection[int]) -> None:
    """Send a signal to the processes that still are."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def worker_of(out: Path) -> int:
    """Process number of a worker that runs a cell."""
    return workers_of(out)[0]
