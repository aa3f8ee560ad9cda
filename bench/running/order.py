"""In which order cells run: one that uses step scales of another comes after it."""

from __future__ import annotations

from collections.abc import Sequence

from vcpo_bench.bench.cells.grid import PlannedCell


def waves(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Groups of cells to run one after another; those of one group may run at the same time."""
    waiting = {cell.key: cell.config.series for cell in cells}
    found: dict[int, list[PlannedCell]] = {}
    for cell in cells:
        depth, lender = 0, cell.config.series
        while lender in waiting:
            depth, lender = depth + 1, waiting[lender]
        found.setdefault(depth, []).append(cell)
    return [found[depth] for depth in sorted(found)]


def chains(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Groups of cells that may run at the same time; those of one group run one after another.

    A scheduler's jobs need nobody who starts the next ones.
    """
    waiting = {cell.key: cell.config.series for cell in cells}
    found: dict[str, list[PlannedCell]] = {}
    for cell in (cell for wave in waves(cells) for cell in wave):
        first = cell.key
        while waiting[first] in waiting:
            first = waiting[first]
        found.setdefault(first, []).append(cell)
    return list(found.values())
