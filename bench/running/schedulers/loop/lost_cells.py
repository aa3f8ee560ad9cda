"""Cells that no job can end: they are recorded as failed, without waiting for those who may still have them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.cell.ending import record_failure
from vcpo_bench.files.claims import ClaimHeldError, Watch


@dataclass(slots=True)
class _Lost:
    cell: PlannedCell
    reason: str
    job: str
    watch: Watch = field(default_factory=Watch)


class GivenUp:
    """Cells that were given up.

    After a node is lost, the claims on its cells fall silent for a lease. One that the last job of the cell has left is
    followed at once: the scheduler says that the job has gone. Others are asked for at every look.

    Args:
        cells_folder: `cells` of the results folder.
    """

    def __init__(self, cells_folder: Path) -> None:
        self._folder = cells_folder
        self._lost: dict[str, _Lost] = {}
        self._recorded: set[str] = set()

    def __contains__(self, key: str) -> bool:
        """Whether a cell was given up."""
        return key in self._lost or key in self._recorded

    def add(self, cell: PlannedCell, reason: str, job: str) -> None:
        """Give a cell up.

        Args:
            cell: The cell.
            reason: Why, in one line.
            job: The last job that was told to run it, which has gone.
        """
        self._lost[cell.key] = _Lost(cell, reason, job)

    def record(self, waiting: Collection[str]) -> list[str]:
        """Record those that can be had now, if they are among `waiting`, cells that have not ended; their keys.

        Raises:
            DiskFullError: There is no space left.
        """
        recorded = [key for key, lost in self._lost.items() if key in waiting and self._record(lost)]
        self._recorded |= set(recorded)
        self._lost = {key: lost for key, lost in self._lost.items() if key in waiting and key not in recorded}
        return recorded

    def _record(self, lost: _Lost) -> bool:
        try:
            return record_failure(lost.cell, self._folder, lost.reason, "", lost.job, lost.watch)
        except ClaimHeldError:
            return False
