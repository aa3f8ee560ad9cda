"""The run's side of the mirroring process: start it, tell it when the run is over, and otherwise ignore it.

A tracker runs in a process of its own because it may crash, hang on the network or fill the disk. The run never
waits for that process; when the run is over, it waits as long as heartbeats arrive.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from vcpo_bench.bench.cells.results_folder import ended_keys
from vcpo_bench.bench.outside.mirror.follow import INTERRUPTED_SECONDS, PATIENCE_SECONDS, MirrorSettings, TrackerMirror
from vcpo_bench.bench.outside.trackers.catalog import Tracker
from vcpo_bench.bench.python_processes import command_of
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.naming.component import parameters
from vcpo_bench.naming.plugins import plugin_files
from vcpo_bench.records import CELL_FILE, CELLS

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid import PlannedCell  # loads torch, which the mirroring process does without

Warn = Callable[[str], None]


class Mirror:
    """Mirrors a grid to one tracker while it runs, as a context manager around the run.

    Any problem with the tracker, including its absence, results in one call of `warn` and has no other effect.

    Args:
        tracker: Where to.
        folder: The results folder.
        cells: The cells of the grid.
        warn: Called with at most one line.
    """

    def __init__(self, tracker: Tracker, folder: Path, cells: Iterable[PlannedCell], warn: Warn) -> None:
        configs = {cell.key: cell.config.values() for cell in cells}
        self._tracker = tracker
        self._settings = _settings(tracker, folder, configs)
        self._warn = warn
        self._warned = False
        self._told = threading.Event()
        self._heard = time.monotonic()
        self._process: subprocess.Popen[str] | None = None
        self._page: Path | None = None

    def report(self, page: Path) -> None:
        """Mirror the report of the finished run."""
        self._page = page

    def __enter__(self) -> Self:
        """Start the process."""
        try:
            self._process = _start()
        except OSError as error:
            self._complain(f"its process cannot be started ({error.strerror})")
        else:
            self._listener = threading.Thread(target=self._converse, args=(self._process,), daemon=True)
            self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Tell the process that the run is over, and wait as long as it sends heartbeats."""
        if self._process is None:
            return
        patience = PATIENCE_SECONDS if error is None else min(PATIENCE_SECONDS, INTERRUPTED_SECONDS)
        try:
            self._heard = time.monotonic()
            if self._told.wait(patience):
                self._say(self._process, {"report": str(self._page.resolve()) if self._page else None})
            while self._listener.is_alive():
                self._listener.join(0.2)
                if time.monotonic() - self._heard > patience:
                    self._complain(f"no heartbeat for {patience:.0f} seconds")
                    break
        finally:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)  # the service of wandb then exits by itself
            self._listener.join()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # it may not have read everything
                    stream.close() if stream else None

    def _converse(self, process: subprocess.Popen[str]) -> None:
        """Body of a thread: send the settings, then read answers until the process ends."""
        self._say(process, asdict(self._settings))
        self._told.set()
        assert process.stdout is not None
        for line in process.stdout:
            self._heard = time.monotonic()
            if problem := json.loads(line).get("problem"):
                self._complain(problem)
        if process.wait():
            self._complain(f"its process ended with {process.returncode}")

    @staticmethod
    def _say(process: subprocess.Popen[str], message: object) -> None:
        assert process.stdin is not None
        with suppress(OSError):  # it has exited, which the listener notices
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()

    def _complain(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            later = self._tracker.command(self._settings.folder)
            remedy = f"the run continues without it; to mirror its results later: {later}"
            self._warn(f"{self._tracker.name}: {problem}; {remedy}")


def _start() -> subprocess.Popen[str]:
    command = command_of("vcpo_bench.bench.outside.mirror")
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    # in a session of its own: Ctrl-C reaches only the run, and the whole group can be killed at the end
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, start_new_session=True)


def _settings(tracker: Tracker, folder: Path, cells: Mapping[str, Mapping[str, Any]]) -> MirrorSettings:
    known = {name: getattr(tracker, name) for name in parameters(type(tracker))}
    return MirrorSettings(
        str(folder.resolve()), tracker.name, known, cells, tuple(map(str, plugin_files(tracker.source)))
    )


def mirror_folder(folder: Path, tracker: Tracker, page: Path | None) -> int:
    """Mirror the ended cells of a results folder that are not mirrored yet, in this process.

    Returns:
        Number of cells mirrored.

    Raises:
        UsageError: No cell has ended, or the tracker is missing or fails.
    """
    cells = {key: read_sealed(folder / CELLS / key / CELL_FILE)["config"] for key in sorted(ended_keys(folder))}
    if not cells:
        raise UsageError(f"{folder}: no ended cell to mirror; is it the folder given to vcpo-bench run --out?")
    try:
        connection = tracker.connect(folder.resolve())
        with closing(TrackerMirror(_settings(tracker, folder, cells), tracker, connection)) as mirror:
            count = mirror.update(last=True)
            if page:
                mirror.report(page)
    except Exception as error:  # trackers raise errors of many kinds
        raise UsageError(f"{tracker.name}: {tracker.trouble(error)}") from error
    return count
