"""A log that grows: read again whenever its files change, whatever happens to them in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from vcpo_bench import records
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.logs.errors import NotYetError
from vcpo_bench.analysis.logs.find import find_sources
from vcpo_bench.analysis.logs.names import AUTO
from vcpo_bench.analysis.logs.rows import Resume
from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.errors import UsageError, VcpoBenchError

Signature = tuple[tuple[str, int, int, int], ...]

_UNFINISHED = ("", "partial")
_LINES = {".jsonl", ".csv", ".log", ".out", ".txt", ".err"}


class Follower:
    """Reads the log of one run again and again.

    The whole log is read each time its files changed: every format can be followed, half a last line is read when it
    is complete, and a value that was overwritten counts as its last writing.

    Args:
        path: Log file or folder of a run; it need not exist yet.
        framework: As for `read_run`.
        mapping: As for `read_run`.

    Attributes:
        run: The run so far; None: nothing could be read yet.
        waiting: Why nothing new could be read, as a sentence; empty where it could.
        went_back: The smallest step at which the newest reading found the run resumed; None: it did not.
    """

    def __init__(self, path: str | Path, framework: str = AUTO, mapping: Mapping[str, str] | None = None) -> None:
        self._path, self._framework, self._mapping = Path(path), framework, dict(mapping or {})
        self._signature: Signature | None = None
        self._newest: LoggedRun | None = None
        self._past: LoggedRun | None = None
        self.run: LoggedRun | None = None
        self.waiting = ""
        self.went_back: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the log says that the run has ended; most formats cannot."""
        return self.run is not None and self.run.status not in _UNFINISHED

    @property
    def complete(self) -> bool:
        """Whether the newest file does not end with half a line, as a writer that buffers leaves it."""
        files = [Path(one[0]) for one in self._signature or () if Path(one[0]).suffix in _LINES]
        try:
            return not files or _ends_a_line(max(files, key=_written))
        except OSError:  # gone since it was read
            return False

    def poll(self) -> bool:
        """Read the log if its files changed.

        Returns:
            Whether there is a new reading in `run`.

        Raises:
            UsageError: The log cannot be followed, and waiting will not help.
        """
        place = self._place()
        signature = _signature(place)
        if signature == self._signature:
            return False
        self.went_back = None
        try:
            found = self._read(place)
        except (VcpoBenchError, OSError) as error:
            if self.run is None and not isinstance(error, NotYetError | OSError):
                raise
            self.waiting = str(error)
            self._signature = signature if isinstance(error, NotYetError) else None
            return False
        self._signature, self.waiting = signature, ""
        self._take(found)
        return True

    def _place(self) -> Path:
        """Where the log is now: a cell of ours is renamed when it ends."""
        if self._path.parent.name != records.CELLS:
            return self._path
        unfinished = self._path.name.endswith(records.PARTIAL_SUFFIX)
        name = self._path.name.removesuffix(records.PARTIAL_SUFFIX)
        other = self._path.with_name(name if unfinished else name + records.PARTIAL_SUFFIX)
        return other if other.is_dir() and not self._path.is_dir() else self._path

    def _read(self, place: Path) -> LoggedRun:
        try:
            return read_run(place, self._framework, self._mapping)
        except NotYetError:
            raise
        except UsageError:
            if self.run is None or not place.is_dir():
                raise
            return read_run(_parts(place), self._framework, self._mapping)  # a resumed run began a second log

    def _take(self, found: LoggedRun) -> None:
        before, newest = self.run, self._newest
        if newest is not None and before is not None:
            if first_step(found) > first_step(newest):
                self._past = before
                if first_step(found) <= before.last_step:
                    self._past = _resumed(before, first_step(found))
            elif first_step(found) < first_step(newest):
                self._past = None
        self._newest = found
        self.run = with_past(self._past, found) if self._past is not None else found
        known = set(before.resumes) if before is not None else set(self.run.resumes)
        steps = [one.step for one in self.run.resumes if one not in known]
        if not steps and before is not None and self.run.last_step < before.last_step:
            steps.append(first_step(found))
        self.went_back = min(steps, default=None)


def _resumed(run: LoggedRun, step: float) -> LoggedRun:
    return replace(run, resumes=(*run.resumes, Resume(step, run.last_step, "the log was begun again")))


def _parts(folder: Path) -> list[Path]:
    """The logs of a folder in the order in which they were last written."""
    sources, _, _ = find_sources(folder)
    newest = {max(source.files, key=_written): source for source in sources}
    files = [newest[file].files for file in sorted(newest, key=_written)]
    return [one for group in files for one in group]


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read(1) in (b"", b"\n", b"\r")


def _signature(path: Path) -> Signature:
    """Names, sizes and times of all files of a log; changes when any of them does."""
    file = Path(str(path).partition("::")[0])
    entries = sorted(one for one in file.rglob("*") if one.is_file()) if file.is_dir() else [file]
    if file.suffix in (".db", ".sqlite", ".sqlite3"):
        entries.append(file.with_name(file.name + "-wal"))
    found = []
    for one in entries:
        try:
            facts = one.stat()
        except OSError:  # gone since the folder was listed
            continue
        found.append((str(one), facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return tuple(found)


def with_past(past: LoggedRun, now: LoggedRun) -> LoggedRun:
    """A reading of a log, behind the steps of an earlier one that come before it."""
    began = first_step(now)
    series = dict(now.series)
    for name, old in past.series.items():
        kept = old.steps < began
        steps, values = old.steps[kept], old.values[kept]
        new = series.get(name)
        if new is not None:
            joined = np.concatenate([steps, new.steps]), np.concatenate([values, new.values])
            series[name] = replace(new, steps=joined[0], values=joined[1])
        elif steps.size:
            series[name] = Series(old.column, old.source, old.logged_as, steps, values)
    return replace(now, series=series, resumes=(*past.resumes, *now.resumes))


def first_step(run: LoggedRun) -> float:
    """The smallest step of any column; NaN where there is none."""
    return min((float(one.steps[0]) for one in run.series.values() if one.steps.size), default=float("nan"))
