"""The acting study: `python tools/acting_study/run.py RESULTS [--jobs 1] [--stack 32]`.

Makes the runs that the shipped table lacks: first the parents, then what is done to them, each from the parent's own
state. Stopped at any time, the same command goes on; so does one with another RESULTS once `page.py` has added the runs
of this one to the table, but a parent that still lacks a branch is then made again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd

from acting_study.cells import FORKS, PARENTS, fork_cells, parent_cells
from acting_study.design import Parent
from acting_study.tables import RUNS, check_repeated, joined, missing_branches, missing_parents, run_table, shipped
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole

KEPT_EVERY = 50
"""Updates between the checkpoints of parents, from which their states are replayed: 2 MB each."""


def grow(known: pd.DataFrame, out: Path, jobs: int, stack: int) -> None:
    """Make every run that is missing.

    Args:
        known: Runs that need not be made again.
        out: Results of the study.
        jobs: Worker processes.
        stack: Cells trained as one stack.

    Raises:
        RuntimeError: Cells ended in an error, or parents that were made again or replayed differ from the known ones.
    """
    _train_parents(missing_parents(joined(known, run_table(out))), out, jobs, stack)
    if branches := missing_branches(joined(known, run_table(out))):
        _train_parents(sorted({branch.parent for branch in branches}), out, jobs, stack)
        check_repeated(known, run_table(out))
        _train(fork_cells(out, branches), RunOptions(out / FORKS, jobs, stack=stack))


def _train_parents(parents: Sequence[Parent], out: Path, jobs: int, stack: int) -> None:
    cells = parent_cells()
    _train([cells[parent] for parent in parents], RunOptions(out / PARENTS, jobs, keep_every=KEPT_EVERY, stack=stack))


def _train(cells: Sequence[PlannedCell], options: RunOptions) -> None:
    if not cells:
        return
    print(f"{options.out.name}: {len(cells)} runs", flush=True)
    if failed := run_grid(cells, options, PlainView(PlainConsole())):
        raise RuntimeError(f"{failed} cells failed; see their errors with: vcpo-bench show {options.out}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=32)
    given = parser.parse_args()
    grow(shipped(RUNS), given.results, given.jobs, given.stack)


if __name__ == "__main__":
    main()
