"""Cells in the background of this machine: one process there runs the pool, and outlives the command."""

from __future__ import annotations

import re
import subprocess
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from vcpo_bench.bench.python_processes import command_of
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import FOLDER
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult, Scheduler
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_text
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.claims import ClaimWatch, claimed
from vcpo_bench.files.disk_space import check_space
from vcpo_bench.files.folders import made
from vcpo_bench.files.regular import read_regular

CANCEL_SECONDS = 10.0
_POLL_SECONDS = 0.1
_WHERE = (FOLDER, "local")
_NAME = re.compile(r"[0-9a-f]{12}")
"""Name of a process: other handles lead out of the folder, or are those of another launcher."""


class DetachedFiles:
    """The files that a background process shares with the commands that watch it, maybe from other machines.

    Args:
        out: The results folder.
        name: Name of the background process.

    Attributes:
        claim: Folder that the process claims while it lives.
        task: Which cells it is to run, and how.
        log: What it prints.
        ending: How it ended.
        cancel: A file that tells it to stop.
    """

    def __init__(self, out: Path, name: str) -> None:
        folder = out.joinpath(*_WHERE)
        self.claim = folder / name
        self.task, self.log, self.ending, self.cancel = (
            folder / f"{name}.{suffix}" for suffix in ("json", "log", "ending", "cancel")
        )

    def has_begun(self) -> bool:
        """Whether the process has shown up, or has ended already."""
        return claimed(self.claim) is not None or self.ending.exists()


class DetachedPool(Scheduler):
    """Background processes of a results folder.

    The handle of a job is the name of a process, so all cells of a process are alive while it is.

    Args:
        options: How to run cells.
    """

    poll_seconds = 1.0

    def __init__(self, options: RunOptions) -> None:
        self._options, self._out = options, options.out.resolve()
        self._watches: dict[str, ClaimWatch] = {}

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        """Start one process for all the jobs, after its name is known."""
        name = uuid.uuid4().hex[:12]
        files = DetachedFiles(self._out, name)
        check_space(self._out)
        made(self._out, *_WHERE)
        keys = [key for job in jobs for key in job.keys]
        write_sealed(files.task, {"keys": keys, "jobs": at_once, "stack": self._options.stack}, cover=False)
        yield [name] * len(jobs)
        command = command_of("vcpo_bench", "run-detached", "--out", str(self._out), "--name", name)
        with files.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        while not files.has_begun():
            if process.poll() is not None:
                last_line = files.log.read_text(errors="replace").strip().splitlines()[-1:]
                raise UsageError(f"--launcher local: the background process did not start: {' '.join(last_line)}")
            time.sleep(_POLL_SECONDS)

    def orphans(self, known: Collection[str]) -> set[str]:
        """Processes that have not begun, whether known or not, because the command that started them was killed.

        They are not alive, so others are started in their place. They must stop as soon as they begin.
        """
        names = [path.stem for path in self._out.joinpath(*_WHERE).glob("*.json")]
        return {name for name in filter(_NAME.fullmatch, names) if self._may_begin(name)}

    def alive(self, handles: Collection[str]) -> set[str]:
        """The processes that hold their claims."""
        return {name for name in filter(_NAME.fullmatch, handles) if self._watch(name).sees_holder()}

    def owns(self, handles: Collection[str]) -> bool:
        """Whether all of these are background processes, and none is a job of another launcher."""
        return all(map(self._owned, handles))

    def result(self, handle: str) -> JobResult:
        """How a process ended; nothing is known of one that was killed."""
        try:
            ending = read_regular(DetachedFiles(self._out, handle).ending).decode(errors="replace")
        except FileNotFoundError:
            return JobResult()
        return JobResult(ending == "canceled", ending, ending == "ended")

    def cancel(self, handles: Collection[str]) -> None:
        """Tell processes to stop, and wait a while until they have."""
        for name in filter(self._owned, handles):
            write_text(DetachedFiles(self._out, name).cancel, "", below=self._out)
        deadline = time.monotonic() + CANCEL_SECONDS
        while self.alive(handles) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _watch(self, name: str) -> ClaimWatch:
        return self._watches.setdefault(name, ClaimWatch(DetachedFiles(self._out, name).claim))

    def _owned(self, name: str) -> bool:
        return bool(_NAME.fullmatch(name)) and DetachedFiles(self._out, name).task.exists()

    def _may_begin(self, name: str) -> bool:
        files = DetachedFiles(self._out, name)
        return not files.has_begun() and not files.cancel.exists()
