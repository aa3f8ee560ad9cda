"""Watching cells through the results folder alone, for a parent without a connection to their workers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files import claims
from vcpo_bench.files.claim_text import Claimed
from vcpo_bench.records import CELL_FILE
from vcpo_bench.records.cell_file import read_cell_file

End = tuple[int, int]
"""Tells one end of a cell from another: inode and time of its file."""


class StoreWatch:
    """Turns what changes in a results folder into events.

    A look lists the folder once, and reads only the claims of running cells and the files of cells that just ended.

    Args:
        cells_folder: `cells` of the results folder.
        cells: The cells to watch, none of which had ended well when they were planned.
        observer: Receives `started`, `progress` and `ended`.
        before: What `failed_ends` found before anything was submitted: these ends are no news.

    Attributes:
        waiting: Cells that have not ended, by key.
        failed: Number of cells that ended with an error.
        begun: Whether a worker or an end has been seen.
    """

    def __init__(
        self, cells_folder: Path, cells: Sequence[PlannedCell], observer: GridObserver, before: Mapping[str, End]
    ) -> None:
        self._folder, self._observer, self._before = cells_folder, observer, before
        self.waiting = {cell.key: cell for cell in cells}
        self.failed = 0
        self.begun = False
        self._claims: dict[str, tuple[Claimed, float]] = {}
        self._started: set[str] = set()

    def look(self) -> None:
        """Look once, and tell the observer what is new."""
        names = set(os.listdir(self._folder))
        for key, cell in list(self.waiting.items()):
            if key in names and self._look_at_end(key):
                continue
            if CellStore(self._folder, key).partial.name in names:
                self._look_at_claim(cell)

    def claim(self, key: str) -> Claimed | None:
        """The claim on a cell, if its holder was heard within the last lease and is not known to have ended."""
        found, heard = self._claims.get(key, (None, 0.0))
        silent = time.monotonic() - heard
        return None if found is None or found.holder.is_gone or silent > claims.LEASE_SECONDS else found

    def drop(self, key: str) -> None:
        """Watch a cell no longer."""
        del self.waiting[key]

    def _look_at_end(self, key: str) -> bool:
        folder = self._folder / key
        identity = _identity(folder)
        if identity is None or identity == self._before.get(key):
            return False
        try:
            facts: Mapping[str, Any] = read_cell_file(folder / CELL_FILE)
        except (DamagedResultError, OSError):  # not visible yet; damage is found by the next run
            return False
        self.begun = True
        self.failed += facts["status"] == "error"
        self._observer.ended(key, facts["status"], float(facts.get("seconds", 0.0)), str(facts.get("reason", "")))
        self.drop(key)
        return True

    def _look_at_claim(self, cell: PlannedCell) -> None:
        found = claims.claimed(CellStore(self._folder, cell.key).partial)
        if found is None:
            self._claims.pop(cell.key, None)
            return
        known = self._claims.get(cell.key, (None, 0.0))[0]
        if known == found:
            return
        self._claims[cell.key] = found, time.monotonic()
        self.begun = True
        if cell.key not in self._started:
            self._started.add(cell.key)
            self._observer.started(cell.key, cell.config.label, cell.updates)
        note = found.note
        if note and (known is None or note != known.note):
            reward, ess = (float(note.get(name, math.nan)) for name in ("reward", "ess"))
            self._observer.progress(cell.key, int(note.get("step", 0)), reward, ess)


def failed_ends(cells_folder: Path, cells: Sequence[PlannedCell]) -> dict[str, End]:
    """The ends of earlier runs of cells that failed, by key; one that has ended well since the plan was made is news.

    Args:
        cells_folder: `cells` of the results folder.
        cells: The cells.
    """
    found = {cell.key: _failed_end(cells_folder / cell.key) for cell in cells}
    return {key: end for key, end in found.items() if end is not None}


def _failed_end(folder: Path) -> End | None:
    identity = _identity(folder)
    if identity is None:
        return None
    try:
        return identity if read_cell_file(folder / CELL_FILE)["status"] == "error" else None
    except (DamagedResultError, OSError):
        return identity


def _identity(folder: Path) -> End | None:
    """Tells one end of a cell from another; None: it has not ended."""
    try:
        facts = (folder / CELL_FILE).stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns
