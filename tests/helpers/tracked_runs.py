"""A small run that reports to a tracker, killed once part of it is there, and what the command mirrors afterward."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patience import within

RUN = [sys.executable, "-m", "vcpo_bench", "run", "--methods", "clip", "--staleness", "2", "--seeds", "1", "--prompts"]
RUN += ["4", "--responses", "4", "--task", "walk-eos", "--jobs", "1", "--no-controls", "--quiet"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Variables of a process that writes checkpoints and mirrors often, with a home of its own."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    quick = {"VCPO_BENCH_CHECKPOINT_SECONDS": "0", "VCPO_BENCH_MIRROR_LOOK_SECONDS": "0.2"}
    return {**kept, "HOME": str(home), **quick, **more}


def wait_for(found: Callable[[], Any], seconds: float = 120.0) -> None:
    """Until something is there."""
    end = time.monotonic() + within(seconds)
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


def killed_once(command: list[str], home: Path, begun: Callable[[], Any]) -> None:
    """Run a command in a process group of its own, and kill that once the tracker has something."""
    process = subprocess.Popen(command, env=environment(home), start_new_session=True)
    wait_for(lambda: process.poll() is not None or begun())
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(steps: int, out: Path, tracker: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The run, to its end."""
    command = [*RUN, "--steps", str(steps), "--out", str(out), "--report-to", tracker]
    found = environment(home, **more)
    return subprocess.run(command, env=found, capture_output=True, text=True, timeout=within(300))


def check_mirrors_what_is_missing_only(out: Path, tracker: str) -> None:
    """The command mirrors a cell to another place once."""
    command = [sys.executable, "-m", "vcpo_bench", "results", "mirror", str(out), "--to", tracker]
    for count in ("1 cell", "no cells"):
        env, limit = environment(out.parent / "home"), within(120)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=limit)
        assert done.stdout == f"{count} mirrored to {tracker}\n"
