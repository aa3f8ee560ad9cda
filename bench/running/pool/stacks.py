"""Which cells of a grid are trained together, as one stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.stack.eligible import shape_of, why_not_stacked
from vcpo_bench.errors import UsageError

GPU_STACK = 128
"""Cells of a stack on a GPU with `--stack auto`: about 25 MB each while a cell of `chain` trains."""
CPU_ROWS = 768
"""Responses of an update, of all cells of a stack together, on a CPU with `--stack auto` (docs/benchmarks/stack.md)."""
CPU_STACK = 32
"""Most cells of a stack there, because they are evaluated together."""


def check_stack(asked: str) -> None:
    """Raise `UsageError` for what `stacks` cannot be asked for."""
    if asked not in ("auto", "off") and (not asked.isdecimal() or int(asked) < 2):
        raise UsageError(f"--stack {asked}: give a number of cells from 2 on, auto or off")


def stacks(
    cells: Sequence[PlannedCell], asked: str, jobs: int, say: Callable[[str], object]
) -> list[tuple[PlannedCell, ...]]:
    """Cells in groups to be trained together, of nearly equal sizes; the longest cells first.

    Args:
        cells: The cells, the longest first.
        asked: Most cells of a stack, `off`, or `auto`: what pays on the device of the cells.
        jobs: Worker processes. On a CPU `auto` gives each the same number of stacks.
        say: Receives one line for each reason that keeps cells alone, but on a CPU where nobody asked for stacks.
    """
    if asked == "off":
        return [(cell,) for cell in cells]
    shapes: dict[object, list[PlannedCell]] = {}
    alone: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        if reason := why_not_stacked(cell.config):
            alone.setdefault("" if cell.config.device == "cpu" and asked == "auto" else reason, []).append(cell)
        else:
            shapes.setdefault((shape_of(cell.config), cell.device), []).append(cell)
    for reason, those in alone.items():
        if reason:
            say(f"{len(those)} cell{'s run' if len(those) > 1 else ' runs'} alone, not in a stack: {reason}")
    together = [part for group in shapes.values() for part in _parts(group, asked, jobs)]
    together += [(cell,) for those in alone.values() for cell in those]
    return sorted(together, key=lambda part: -sum(cell.cost for cell in part))


def _parts(group: Sequence[PlannedCell], asked: str, jobs: int) -> list[tuple[PlannedCell, ...]]:
    config, step = group[0].config, 1
    if asked != "auto":
        size = int(asked)
    elif config.device != "cpu":
        size = GPU_STACK
    else:
        size, step = max(1, min(CPU_STACK, CPU_ROWS // (config.prompts * config.responses))), jobs
    count = min(len(group), step * -(-len(group) // (size * step)))
    return [tuple(group[part::count]) for part in range(count)]
