"""The background process that `--launcher local --detach` starts: it runs the pool, and nobody waits for it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.run_here import run_here
from vcpo_bench.bench.running.schedulers.detached import DetachedFiles
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.files.atomic import write_text
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.files.claims import Claim
from vcpo_bench.methods import load_plugin

POLL_SECONDS = 0.5


def run_detached(out: Path, name: str, make_observer: ObserverFactory | None) -> int:
    """Run the cells of a background process, and write down how it ended.

    Args:
        out: The results folder.
        name: Name of the process.
        make_observer: Makes the observer of a cell that may be stopped early.

    Returns:
        Number of cells that failed.

    Raises:
        DamagedResultError: No cells were left under this name.
        ClaimHeldError: Another process of this name runs them.
        UsageError: The cells cannot be run here.
        DiskFullError: There is no space left.
    """
    files = DetachedFiles(out, name)
    task = read_sealed(files.task)
    with Claim(files.claim, wait=False), _ending_written(files):
        threading.Thread(target=_stop_when_told, args=(files.cancel,), daemon=True).start()
        jobs = LaunchFile(out).cell_jobs(task["keys"], make_observer)
        for plugin in jobs[0].plugins:
            load_plugin(plugin)
        options = RunOptions(
            out, task["jobs"], False, jobs[0].keep_every, jobs[0].plugins, make_observer, stack=task["stack"]
        )
        return run_here([job.cell for job in jobs], options, _Log())


@contextmanager
def _ending_written(files: DetachedFiles) -> Iterator[None]:
    ending = "canceled"
    try:
        yield
        ending = "ended"
    except Exception as problem:
        ending = " ".join(str(problem).split()) or type(problem).__name__
        raise
    finally:
        with suppress(FileNotFoundError):  # the command that watched has seen the last cell end, and removed the folder
            write_text(files.ending, ending)


def _stop_when_told(cancel: Path) -> None:
    """Stop this process, as Ctrl-C would, once a command asks for it."""
    while not cancel.exists():
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


class _Log(GridObserver):
    """Prints what happens, but for progress: that is in the claims."""

    def begin(self, cells: Sequence[tuple[str, str]], already_done: int) -> None:
        """Not printed."""

    def started(self, key: str, label: str, steps: int) -> None:
        print("started", label, flush=True)

    def progress(self, key: str, step: int, reward: float, ess: float) -> None:
        """Not printed."""

    def ended(self, key: str, status: str, seconds: float, reason: str) -> None:
        print("ended", key, status, reason, flush=True)

    def message(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        """Nothing to close."""
