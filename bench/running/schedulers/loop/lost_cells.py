"""Cells whose jobs died too often: they are recorded as failed as soon as no other worker can have them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.cell.ending import record_failure
from vcpo_bench.files.claims import ClaimHeldError, ClaimHistory


@dataclass(slots=True)
class _LostCell:
    cell: PlannedCell
    reason: str
    job: str
    watch: ClaimHistory = field(default_factory=ClaimHistory)


class LostCells:
    """Cells to be recorded as failed.

    The claims on the cells of a lost node fall silent, and may be taken over after a lease. The claim of a cell's last
    job is taken over at once, because the scheduler says that this job is gone. For other claims `record` tries again
    at every call, and never waits.
    """

    def __init__(self, cells_folder: Path) -> None:
        self._folder = cells_folder
        self._cells: dict[str, _LostCell] = {}

    def add(self, cell: PlannedCell, reason: str, job: str) -> None:
        """Add a cell."""
        self._cells[cell.key] = _LostCell(cell, reason, job)

    def record(self, unfinished: Collection[str]) -> list[str]:
        """Record the cells that no other worker can have; returns their keys.

        Args:
            unfinished: Keys of the cells that have not ended: others are forgotten.

        Raises:
            DiskFullError: There is no space left.
        """
        self._cells = {key: lost for key, lost in self._cells.items() if key in unfinished}
        recorded = [key for key, lost in self._cells.items() if self._record(lost)]
        for key in recorded:
            del self._cells[key]
        return recorded

    def _record(self, lost: _LostCell) -> bool:
        try:
            return record_failure(lost.cell, self._folder, lost.reason, "", lost.job, lost.watch)
        except ClaimHeldError:
            return False
