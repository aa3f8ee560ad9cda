"""The launch file of a results folder: how each cell is to be run, which is what jobs read, and which job has it.

Only the process that submits writes the file. It is removed when every cell has ended well.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.bench.training.step_observer import ObserverFactory
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, write_sealed
from vcpo_bench.files.folders import made
from vcpo_bench.records import CELLS

FOLDER = ".launch"
"""Folder of a results folder with this file and the logs of jobs."""
_FILE = "launch.json"
_PARTS: dict[str, type] = {"cells": dict, "handles": str, "replaced": str, "deaths": int}
"""What the entries of each part are; the file may be a stranger's."""


def tag_of(out: Path) -> str:
    """What marks the jobs of a results folder among those of the user; those of a folder elsewhere have another.

    Args:
        out: The folder, as an absolute path.
    """
    return hashlib.sha256(str(out).encode()).hexdigest()[:12]


class LaunchFile:
    """The launch file of a results folder.

    Args:
        out: The results folder.
        check: Called before the file is written or removed; see `RunOptions.check`.
    """

    def __init__(self, out: Path, check: Callable[[], object] = lambda: None) -> None:
        self.out, self.folder, self._check = out, out / FOLDER, check
        self._path = self.folder / _FILE

    def add_cells(self, jobs: Iterable[CellJob]) -> None:
        """Enter cells, so that jobs can read how to run them."""
        cells = {job.cell.key: _to_json(job) for job in jobs}
        self._write(cells=cells)

    def record_handles(self, handles: Mapping[str, str]) -> None:
        """Enter which job runs a cell.

        The handle of an earlier job of the cell is kept as `replaced`: that job may still run.
        """
        known = self.handles()
        replaced = {known[key]: key for key in handles if known.get(key, handles[key]) != handles[key]}
        self._write(handles=handles, replaced=replaced)

    def handles(self) -> dict[str, str]:
        """Handles of the jobs that were submitted, by key of their cells."""
        return dict(self._values()["handles"])

    def replaced(self) -> dict[str, str]:
        """Handles of jobs in whose place another was submitted, because they had gone, with the keys of their cells."""
        values = self._values()
        current = set(values["handles"].values())
        return {handle: key for handle, key in values["replaced"].items() if handle not in current}

    def record_deaths(self, deaths: Mapping[str, int]) -> None:
        """Enter how many jobs have died since a cell last ended, by its key."""
        self._write(deaths=deaths)

    def deaths(self) -> dict[str, int]:
        """How many jobs have died since a cell last ended, by its key; 0 and missing are the same."""
        return dict(self._values()["deaths"])

    def cell_jobs(self, keys: Collection[str], make_observer: ObserverFactory | None) -> list[CellJob]:
        """How cells are to be run.

        Raises:
            UsageError: The file does not name one of them, or does not say how to run it.
        """
        cells, again = self._values()["cells"], "submit it with vcpo-bench run"
        for key in keys:
            if key not in cells:
                raise UsageError(f"--key {key}: {self.out} holds no such cell to run; {again}")
        try:
            return [_from_json(cells[key], self.out, make_observer) for key in keys]
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{self._path} does not say how to run {', '.join(keys)}; {again}") from error

    def remove(self) -> None:
        """Remove the file, and the logs beside it: all cells have ended well."""
        self._check()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _values(self) -> dict[str, Any]:
        """An unreadable file counts as none: whoever submits writes it again."""
        try:
            values = read_sealed(self._path)
        except DamagedResultError:
            values = {}
        return {part: _entries(values.get(part), kind) for part, kind in _PARTS.items()}

    def _write(self, **parts: Mapping[str, Any]) -> None:
        made(self.out, FOLDER)
        values = self._values()
        for part, entries in parts.items():
            values[part] |= entries
        self._check()  # after reading: what another wrote since would be lost
        write_sealed(self._path, values, cover=False)


def _entries(found: object, kind: type) -> dict[str, Any]:
    return {key: one for key, one in found.items() if type(one) is kind} if isinstance(found, dict) else {}


def _to_json(job: CellJob) -> dict[str, Any]:
    cell = job.cell
    paths = {"start": cell.start, "origin": cell.origin}
    return {
        "key": cell.key,
        "config": cell.config.values(),
        "control": cell.control,
        "cost": cell.cost,
        "updates": cell.updates,
        "device": cell.device,
        "keep_every": job.keep_every,
        "plugins": [str(path) for path in job.plugins],
        **{name: str(path.resolve()) if path else None for name, path in paths.items()},
    }


def _from_json(entry: Mapping[str, Any], out: Path, make_observer: ObserverFactory | None) -> CellJob:
    cell = PlannedCell(
        CellConfig.recorded(entry["config"]),
        entry["key"],
        entry["control"],
        entry["cost"],
        entry["updates"],
        device=entry["device"],
    )
    start, origin = (Path(entry[name]) if entry[name] else None for name in ("start", "origin"))
    plugins = tuple(Path(path) for path in entry["plugins"])
    cells = (replace(cell, start=start, origin=origin),)
    return CellJob(cells, out / CELLS, entry["keep_every"], plugins, make_observer)
