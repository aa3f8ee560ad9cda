"""Follows a results folder and logs new rows to a tracker: one run per cell, named by the cell's key.

All rows come from recorded tables; those of a running cell, from its newest checkpoint. So a mirror may start late,
crash or restart without gaps or repeated rows.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import WRITER
from vcpo_bench.bench.outside.trackers.catalog import TRACKERS, Connection, TrackedRun, Tracker
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.atomic import write_text
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.files.claims import Claim, ClaimHeldError
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.files.parquet import read_parquet
from vcpo_bench.files.regular import read_regular
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.records import CELL_FILE, CELLS, EVALS_FILE, EVENTS_FILE, STEPS_FILE
from vcpo_bench.records.table_file import seal_beside


def _seconds(name: str, default: str) -> float:
    return float(os.environ.get(f"VCPO_BENCH_MIRROR_{name}_SECONDS", default))


LOOK_SECONDS = _seconds("LOOK", "3")
"""Seconds between two updates from the results folder."""
PATIENCE_SECONDS = _seconds("PATIENCE", "60")
"""Seconds without a heartbeat after which, once the run is over, the mirror is killed."""
INTERRUPTED_SECONDS = 1.0
"""The same after an interrupted run: when it resumes, so does the mirror."""


Metrics = dict[str, Any]


def history(tables: Path, first: int, ended: bool) -> Iterator[tuple[int, Metrics]]:
    """The metrics of a cell by update: update t and the evaluation after t updates share a row.

    Columns become `steps/NAME` and `evals/NAME`; `events/EVENT` counts events.

    Args:
        tables: Folder with the tables: an ended cell or a checkpoint.
        first: First update to return.
        ended: The cell has ended. Before, an evaluation waits for its update, which is recorded later.

    Yields:
        Update and metrics, in order. Missing and non-finite values are left out.
    """
    rows: defaultdict[int, Metrics] = defaultdict(dict)
    steps = _read(tables / STEPS_FILE)
    _enter(rows, "steps", steps)
    _enter(rows, "evals", _read(tables / EVALS_FILE))
    for event in _read(tables / EVENTS_FILE):
        row, name = rows[event["step"]], f"events/{event['event']}"
        row[name] = row.get(name, 0) + 1
    end = max(rows, default=-1) + 1 if ended else len(steps)
    yield from ((step, rows[step]) for step in sorted(rows) if first <= step < end)


def _read(path: Path) -> list[Metrics]:
    return list(read_parquet(path, seal_beside(path)).to_pylist()) if path.exists() else []


def _enter(rows: defaultdict[int, Metrics], table: str, recorded: Sequence[Metrics]) -> None:
    for record in recorded:
        kept = {name: value for name, value in record.items() if name != "step" and _is_there(value)}
        rows[record["step"]] |= {f"{table}/{name}": value for name, value in kept.items()}


def _is_there(value: object) -> bool:
    return value not in (None, "") and (not isinstance(value, float) or math.isfinite(value))


_FACTS = ("status", "reason", "steps_done", "seconds")
_ORIGIN = ("control", "method_version", "rules_version", "provenance")


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """What to mirror, and where to. JSON values only, since another process receives it.

    Attributes:
        folder: The results folder.
        tracker: Name of the tracker.
        parameters: Its parameters.
        cells: Configuration of every cell by key.
        plugins: Plug-in files that hold the tracker; none if it ships.
    """

    folder: str
    tracker: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cells: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()

    def open(self) -> Tracker:
        """The tracker."""
        for path in self.plugins:
            load_plugin(path)
        return TRACKERS.get(self.tracker)(**self.parameters)


class TrackerMirror:
    """Keeps a tracker up to date with a results folder.

    Args:
        settings: What to mirror.
        tracker: The tracker that they name.
        connection: What it connected to.
        heartbeat: Called after each cell that was logged.

    Attributes:
        waiting: Keys of the cells that are not fully mirrored.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        tracker: Tracker,
        connection: Connection,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings, self.connection, self.heartbeat = settings, connection, heartbeat
        self.folder = Path(settings.folder).resolve()
        self.kept = self.folder / tracker.name
        self.marks = self.kept / "mirrored" / tracker.target
        self.waiting: list[str] = []
        self._failed_before: dict[str, str] = {}
        self._claim: Claim | None = None
        self._runs: dict[str, TrackedRun] = {}
        self._next: dict[str, int] = {}
        self._seen: dict[str, str] = {}

    def update(self, last: bool = False) -> int:
        """Log what is new.

        Args:
            last: The run is over: cells that have not ended are logged as interrupted.

        Returns:
            Number of cells that are now fully mirrored.

        Raises:
            BlockingIOError: `last`, and another mirror still holds the folder.
            ClaimLostError: Another mirror has taken the folder over, because this process stood still.
        """
        done = 0
        cells = self.folder / CELLS
        if not cells.is_dir() or not self._hold(last):
            return 0
        present = set(os.listdir(cells))
        for key in list(self.waiting):
            running = CellStore(cells, key).partial.name in present
            tried = key not in self._failed_before or self._ended(key) != self._failed_before[key]
            if key in present and (tried or (last and not running)):
                self._log_ended(key)
                done += 1
            elif running:
                self._log_running(key)
        for run in self._runs.values() if last else ():
            run.interrupt()
        return done

    def report(self, page: Path) -> None:
        """Hand over the report of the folder."""
        self.connection.report(self.folder.name, page)

    def close(self) -> None:
        """Release the folder for other mirrors."""
        if self._claim:
            self._claim.__exit__(None, None, None)
            self._claim = None

    def _hold(self, last: bool) -> bool:
        """Claim the folder and list the cells to mirror, once it is claimed: another mirror may be finishing some."""
        if self._claim:
            self._claim.check()
            return True
        made(self.folder, self.kept.name)
        refuse_link(self.kept / WRITER)
        try:
            self._claim = Claim(self.kept / WRITER, wait=False).__enter__()
        except ClaimHeldError as error:
            if last:
                raise BlockingIOError(f"another process is mirroring the folder ({error})") from error
            return False
        self.waiting = [key for key in self.settings.cells if not self._is_marked(key)]
        self._failed_before = {key: ended for key in self.waiting if (ended := self._failure(key))}
        return True

    def _log_running(self, key: str) -> None:
        """Log the rows of a running cell's newest checkpoint."""
        store = CellStore(self.folder / CELLS, key)
        checkpoint = store.latest_checkpoint()
        if checkpoint is None or checkpoint.name == self._seen.get(key):
            return
        try:
            rows = list(history(checkpoint, self._next.get(key, 0), ended=False))
        except (OSError, DamagedResultError):  # a newer checkpoint is replacing it: the next update reads that one
            return
        if store.latest_checkpoint() != checkpoint:  # it may have lost a table while it was read
            return
        self._log(key, rows)
        self._seen[key] = checkpoint.name

    def _log_ended(self, key: str) -> None:
        folder = self.folder / CELLS / key
        facts = read_sealed(folder / CELL_FILE)
        self._log(key, list(history(folder, self._next.get(key, 0), ended=True)))
        facts_kept, origin = ({name: facts.get(name) for name in names} for names in (_FACTS, _ORIGIN))
        self._runs.pop(key).finish(facts_kept, origin, failed=facts["status"] == "error")
        made(self.folder, *self.marks.relative_to(self.folder).parts)
        write_text(self.marks / key, self._ended(key), below=self.folder)
        self.waiting.remove(key)

    def _log(self, key: str, rows: list[tuple[int, dict[str, Any]]]) -> None:
        if key not in self._runs:
            self._runs[key] = run = self.connection.start(key, self.settings.cells[key])
            self._next[key] = run.first
        new = [(step, metrics) for step, metrics in rows if step >= self._next[key]]
        if new:
            self._runs[key].log(new)
            self._next[key] = new[-1][0] + 1
        self.heartbeat()

    def _is_marked(self, key: str) -> bool:
        mark = self.marks / key
        return mark.exists() and read_regular(mark).decode(errors="replace") == self._ended(key)

    def _failure(self, key: str) -> str:
        """When the cell ended with an error, if it did: running the grid again retries it."""
        path = self.folder / CELLS / key / CELL_FILE
        return self._ended(key) if path.exists() and read_sealed(path).get("status") == "error" else ""

    def _ended(self, key: str) -> str:
        path = self.folder / CELLS / key / CELL_FILE
        return str(read_sealed(path).get("ended")) if path.exists() else ""
