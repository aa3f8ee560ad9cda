"""What the worker of a cell and the trainer's own processes tell each other, through files of one folder.

The worker writes `job.json`. The trainer leaves checkpoints `checkpoint-N` and the tables in `tables`, and says in
`progress.json` how far it is and which of these are whole.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes

JOB, PROGRESS, TABLES, LOG = "job.json", "progress.json", "tables", "log.txt"
FOLLOWS = "VCPO_BENCH_FOLLOWS_STDIN"
"""Set where a worker holds the other end of standard input: the processes end with it."""


@dataclass(frozen=True, kw_only=True)
class TrainerJob:
    """What to train.

    Attributes:
        key: Key of the cell.
        config: Settings of the cell that differ from their defaults.
        updates: Optimizer updates of the whole run.
        model: Folder of the language model.
        plugins: Plug-in files to load first.
        keep_every: Updates between two checkpoints that stay; 0: none does.
        resume: Checkpoint to go on from; empty: start anew.
    """

    key: str
    config: Mapping[str, Any]
    updates: int
    model: str
    plugins: tuple[str, ...] = ()
    keep_every: int = 0
    resume: str = ""

    def text(self) -> str:
        """Its file, as JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    def write(self, folder: Path) -> Path:
        """Write it into a folder; returns the file."""
        write_bytes(folder / JOB, self.text().encode())
        return folder / JOB

    @classmethod
    def read(cls, path: Path) -> TrainerJob:
        """What `write` wrote, or somebody by hand."""
        job = cls(**json.loads(path.read_text()))
        return replace(job, plugins=tuple(job.plugins))


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a trainer is.

    Attributes:
        step: Updates done.
        reward: Sampled reward of the newest one.
        ess: Raw ESS ratio of the newest one.
        checkpoint: Updates of the newest checkpoint that is whole; 0: there is none.
        status: How the cell has ended, once its tables are whole; empty before.
        stopped: Why a detector ended it; else empty.
        error: What a process failed with; else empty.
        usage: Whether trying again cannot help: something is not there, or cannot be carried out.
    """

    step: int = 0
    reward: float = 0.0
    ess: float = 1.0
    checkpoint: int = 0
    status: str = ""
    stopped: str = ""
    error: str = ""
    usage: bool = False

    def write(self, folder: Path) -> None:
        """Write it into the folder of the job."""
        write_bytes(folder / PROGRESS, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> Progress:
        """The newest one; nothing has been done where there is none."""
        try:
            return cls(**json.loads((folder / PROGRESS).read_bytes()))
        except FileNotFoundError:
            return cls()


def carry_out(train: Callable[[Path], None], job: Path) -> None:
    """Train, and say in the folder of the job what went wrong if something does.

    The process ends, and all that it has started, when the worker that started it has gone.
    """
    if os.environ.get(FOLLOWS):
        threading.Thread(target=_wait_for_the_end, daemon=True).start()
    try:
        train(job)
    except Exception as problem:
        if os.environ.get("RANK", "0") == "0":
            usage = isinstance(problem, UsageError)
            said = str(problem) if usage else f"{type(problem).__name__}: {problem}"
            replace(Progress.read(job.parent), error=said, usage=usage).write(job.parent)
        raise


def _wait_for_the_end() -> None:
    while os.read(sys.stdin.fileno(), 1024):  # the buffer of sys.stdin would be locked when the interpreter ends
        pass
    os.killpg(0, signal.SIGKILL)  # the worker gave them a group of their own
