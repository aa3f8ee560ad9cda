"""The order in which cells run: a cell that uses step scales of another comes after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vcpo_bench.bench.cells.grid import PlannedCell


def waves(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Groups of cells to run one after another; those of one group may run at the same time."""
    waiting = {cell.key: cell.config.series for cell in cells}
    by_depth: dict[int, list[PlannedCell]] = {}
    for cell in cells:
        depth, lender = 0, cell.config.series
        while lender in waiting:
            depth, lender = depth + 1, waiting[lender]
        by_depth.setdefault(depth, []).append(cell)
    return [by_depth[depth] for depth in sorted(by_depth)]


def chains(cells: Sequence[PlannedCell]) -> list[list[PlannedCell]]:
    """Groups of cells that may run at the same time; those of one group run one after another.

    A group fits into one job of a scheduler, which then needs nobody to start the next cells.
    """
    waiting = {cell.key: cell.config.series for cell in cells}
    by_first: dict[str, list[PlannedCell]] = {}
    for cell in (cell for wave in waves(cells) for cell in wave):
        first = cell.key
        while waiting[first] in waiting:
            first = waiting[first]
        by_first.setdefault(first, []).append(cell)
    return list(by_first.values())


def held_back(cells: Sequence[PlannedCell], unfinished: Collection[str]) -> set[str]:
    """Keys of the cells that cannot run yet: they use step scales of an unfinished cell that is not among `cells`.

    Args:
        cells: The cells that are to run next.
        unfinished: Keys of all cells that have not ended.
    """
    held: set[str] = set()
    ready: set[str] = set()
    for cell in (cell for wave in waves(cells) for cell in wave):
        lender = cell.config.series
        (held if lender in unfinished and lender not in ready else ready).add(cell.key)
    return held
