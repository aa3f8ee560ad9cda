"""Cells in worker processes of this machine, in an order in which none waits for another."""

from __future__ import annotations

from collections.abc import Sequence

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.observers import GridObserver
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.order import waves
from vcpo_bench.bench.running.pool.pool import run_jobs
from vcpo_bench.bench.running.pool.stacks import stacks


def run_here(cells: Sequence[PlannedCell], options: RunOptions, observer: GridObserver) -> int:
    """Run cells in a pool of `options.jobs` processes, `options.stack` of them as one stack; returns how many failed.

    Raises:
        UsageError: The cells cannot be run.
        DiskFullError: There is no space left.
    """
    failed = 0
    for wave in waves(cells):
        groups = stacks(wave, options.stack, observer.message) if options.stack else [(cell,) for cell in wave]
        failed += run_jobs(options.cell_jobs(groups), options.jobs, observer)
    return failed
