"""Which cells of a grid are trained together, as one stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.stack.eligible import shape_of, why_not_stacked
from vcpo_bench.errors import UsageError

GPU_STACK = 128
"""Cells of a stack on a GPU with `--stack auto`: about 25 MB each while a cell of `chain` trains."""


def stack_size(asked: str, device: str) -> int:
    """Cells of a stack for `--stack`; 0: none are stacked.

    Args:
        asked: `auto`: stacks on a GPU, and none on a CPU, where they gain little; `off`; or a number.
        device: `cpu`, `cuda` or `cuda:N`.

    Raises:
        UsageError: It is none of these.
    """
    if asked == "auto":
        return 0 if device == "cpu" else GPU_STACK
    if asked == "off":
        return 0
    if not asked.isdecimal() or int(asked) < 2:
        raise UsageError(f"--stack {asked}: give a number of cells from 2 on, auto or off")
    return int(asked)


def stacks(cells: Sequence[PlannedCell], size: int, say: Callable[[str], object]) -> list[tuple[PlannedCell, ...]]:
    """Cells in groups to be trained together, of at most `size` and of nearly equal sizes; the longest cells first.

    Args:
        cells: The cells, the longest first.
        size: Most cells of a stack.
        say: Receives one line for each reason that keeps cells alone.
    """
    shapes: dict[object, list[PlannedCell]] = {}
    alone: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        if reason := why_not_stacked(cell.config):
            alone.setdefault(reason, []).append(cell)
        else:
            shapes.setdefault((shape_of(cell.config), cell.device), []).append(cell)
    for reason, those in alone.items():
        say(f"{len(those)} cell{'s run' if len(those) > 1 else ' runs'} alone, not in a stack: {reason}")
    together = [part for group in shapes.values() for part in _parts(group, size)]
    together += [(cell,) for those in alone.values() for cell in those]
    return sorted(together, key=lambda part: -max(cell.cost for cell in part))


def _parts(group: Sequence[PlannedCell], size: int) -> list[tuple[PlannedCell, ...]]:
    count = -(-len(group) // size)
    return [tuple(group[part::count]) for part in range(count)]
