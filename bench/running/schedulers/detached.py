"""Cells in the background of this machine: one process, the keeper, runs the pool and outlives the command."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import FOLDER
from vcpo_bench.bench.running.schedulers.loop.scheduler import Fate, Scheduler
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_text
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.claims import Look, claimed
from vcpo_bench.files.disk_space import check_space
from vcpo_bench.files.folders import made
from vcpo_bench.files.regular import read_regular

CANCEL_SECONDS = 10.0
_LOOK_SECONDS = 0.1
_KEEPERS = (FOLDER, "local")


class KeeperFiles:
    """Where a keeper and the commands that watch it meet; the two may be on different machines.

    Args:
        out: The results folder.
        name: Name of the keeper.

    Attributes:
        claim: Folder that the keeper claims while it lives.
        task: Which cells it is to run, and how.
        log: What it prints.
        ending: How it ended.
        cancel: A file that tells it to stop.
    """

    def __init__(self, out: Path, name: str) -> None:
        folder = out.joinpath(*_KEEPERS)
        self.claim = folder / name
        self.task, self.log, self.ending, self.cancel = (
            folder / f"{name}.{suffix}" for suffix in ("json", "log", "ending", "cancel")
        )


class Background(Scheduler):
    """Keepers of a results folder. A handle is the name of a keeper: all its cells are alive while it is.

    Args:
        options: How to run cells.
    """

    every = 1.0

    def __init__(self, options: RunOptions) -> None:
        self._options, self._out = options, options.out.resolve()
        self._looks: dict[str, Look] = {}

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        """Start one keeper for all the jobs, once its name is known."""
        name = uuid.uuid4().hex[:12]
        files = KeeperFiles(self._out, name)
        check_space(self._out)
        made(self._out, *_KEEPERS)
        keys = [key for job in jobs for key in job.keys]
        write_sealed(files.task, {"keys": keys, "jobs": at_once, "stack": self._options.stack}, cover=False)
        yield [name] * len(jobs)
        command = [sys.executable, "-m", "vcpo_bench", "keep-cells", "--out", str(self._out), "--name", name]
        with files.log.open("ab") as log:
            keeper = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        while claimed(files.claim) is None and not files.ending.exists():
            if keeper.poll() is not None:
                said = files.log.read_text(errors="replace").strip().splitlines()[-1:]
                raise UsageError(f"--launcher local: the background process did not start: {' '.join(said)}")
            time.sleep(_LOOK_SECONDS)

    def strays(self, known: Collection[str]) -> set[str]:
        """Keepers that have not begun, whoever knows them: the command that started one was killed.

        They count as gone, and others are started in their place. So they must end when they begin.
        """
        names = {path.stem for path in (self._out / FOLDER / "local").glob("*.json")}
        return {name for name in names if _begins(KeeperFiles(self._out, name))}

    def alive(self, handles: Collection[str]) -> set[str]:
        """Those whose keepers live."""
        return {name for name in handles if self._look(name).sees_holder()}

    def owns(self, handles: Collection[str]) -> bool:
        """Whether these are keepers, and not the jobs of a scheduler."""
        return all(KeeperFiles(self._out, name).task.exists() for name in handles)

    def fate(self, handle: str) -> Fate:
        """How a keeper ended; nothing is said by one that was killed."""
        try:
            said = read_regular(KeeperFiles(self._out, handle).ending).decode(errors="replace")
        except FileNotFoundError:
            return Fate()
        return Fate(said == "canceled", said, said == "ended")

    def cancel(self, handles: Collection[str]) -> None:
        """Tell keepers to stop, and wait a while until they have."""
        for name in handles:
            write_text(KeeperFiles(self._out, name).cancel, "")
        deadline = time.monotonic() + CANCEL_SECONDS
        while self.alive(handles) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def _look(self, name: str) -> Look:
        return self._looks.setdefault(name, Look(KeeperFiles(self._out, name).claim))


def _begins(files: KeeperFiles) -> bool:
    """Whether a keeper was started, or is to be, and has not shown up yet."""
    return claimed(files.claim) is None and not files.ending.exists() and not files.cancel.exists()
