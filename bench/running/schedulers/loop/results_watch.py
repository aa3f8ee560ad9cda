"""Watching cells through the results folder alone, for a process without a connection to their workers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files import claims
from vcpo_bench.files.claim_text import Claimed
from vcpo_bench.progress import GridObserver
from vcpo_bench.records import CELL_FILE
from vcpo_bench.records.cell_file import read_cell_file

EndIdentity = tuple[int, int]
"""Tells one end of a cell from another: inode and modification time of its file."""


class ResultsWatch:
    """Turns what changes in a results folder into events.

    `poll` lists the folder once. It reads only the claims of running cells and the files of cells that just ended.

    Args:
        cells_folder: `cells` of the results folder.
        cells: The cells to watch, none of which had ended well when they were planned. Where one has failed by now,
            that was an earlier run, and its next end is waited for.

    Attributes:
        unfinished: Cells that have not ended, by key.
        failed: Number of cells that ended with an error.
        begun: Whether a worker or an end has been seen.
    """

    def __init__(self, cells_folder: Path, cells: Sequence[PlannedCell]) -> None:
        self._folder = cells_folder
        self.unfinished = {cell.key: cell for cell in cells}
        self.failed = 0
        self.begun = False
        self._earlier_ends = {cell.key: _failed_end(cells_folder / cell.key) for cell in cells}
        self._claims: dict[str, tuple[Claimed, float]] = {}
        self._started: set[str] = set()

    def poll(self, observer: GridObserver) -> None:
        """Look for changes, and tell the observer about them by `started`, `progress` and `ended`."""
        names = set(os.listdir(self._folder))
        for key, cell in list(self.unfinished.items()):
            if key in names and self._read_end(key, observer):
                continue
            if CellStore(self._folder, key).partial.name in names:
                self._read_claim(cell, observer)

    def claim(self, key: str) -> Claimed | None:
        """The claim on a cell, if its holder was heard within the last lease and is not known to have ended."""
        claim, heard = self._claims.get(key, (None, 0.0))
        silent = time.monotonic() - heard
        return None if claim is None or claim.holder.is_gone or silent > claims.LEASE_SECONDS else claim

    def drop(self, key: str) -> None:
        """Watch a cell no longer."""
        del self.unfinished[key]

    def _read_end(self, key: str, observer: GridObserver) -> bool:
        folder = self._folder / key
        identity = _identity(folder)
        if identity is None or identity == self._earlier_ends[key]:
            return False
        try:
            facts: Mapping[str, Any] = read_cell_file(folder / CELL_FILE)
        except (DamagedResultError, OSError):  # not visible yet; damage is found by the next run
            return False
        self.begun = True
        self.failed += facts["status"] == "error"
        for text in facts.get("warnings") or ():
            observer.warned(text)
        observer.ended(key, facts["status"], float(facts.get("seconds", 0.0)), str(facts.get("reason", "")))
        self.drop(key)
        return True

    def _read_claim(self, cell: PlannedCell, observer: GridObserver) -> None:
        claim = claims.claimed(CellStore(self._folder, cell.key).partial)
        if claim is None:
            self._claims.pop(cell.key, None)
            return
        known = self._claims.get(cell.key, (None, 0.0))[0]
        if known == claim:
            return
        self._claims[cell.key] = claim, time.monotonic()
        self.begun = True
        if cell.key not in self._started:
            self._started.add(cell.key)
            observer.started(cell.key, cell.config.label, cell.updates)
        note = claim.note
        if note and (known is None or note != known.note):
            reward, ess = (float(note.get(name, math.nan)) for name in ("reward", "ess"))
            observer.progress(cell.key, int(note.get("step", 0)), reward, ess)


def _failed_end(folder: Path) -> EndIdentity | None:
    """The end of an earlier run that failed; None: there is none, or the cell has ended well since it was planned."""
    identity = _identity(folder)
    if identity is None:
        return None
    try:
        return identity if read_cell_file(folder / CELL_FILE)["status"] == "error" else None
    except (DamagedResultError, OSError):
        return identity


def _identity(folder: Path) -> EndIdentity | None:
    """Tells one end of a cell from another; None: it has not ended."""
    try:
        facts = (folder / CELL_FILE).stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns
