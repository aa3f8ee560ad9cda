"""The boundary study: `python tools/boundary_study/run.py RESULTS [--jobs 1] [--stack 32]`.

Makes the runs that the shipped tables lack, place after place: first the pilot that finds the rate, then the 32 main
seeds. Stopped at any time, the same command goes on; so does one with another RESULTS once `page.py` has added the runs
of this one to the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from boundary_study.design import STEPS, Place, wanted
from boundary_study.tables import FOLDER, Tables, joined, outcomes
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ended_keys
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole


def grow(known: Tables, options: RunOptions) -> None:
    """Run until every place has ended.

    Args:
        known: Runs that need not be made again.
        options: Results folder, workers and stack.

    Raises:
        RuntimeError: Cells ended in an error, or are not found among the results, so that their place would stay open
            for ever.
    """
    made: list[tuple[Place, float, int]] = []
    while runs := wanted(outcomes(joined(known, ended(options.out)).runs)):
        if again := sorted(set(runs) & set(made)):
            raise RuntimeError(f"{options.out} has no results of {again[0]}, which was run")
        made = runs
        place, rung, seed = runs[0]
        where = f"{place.task}, {place.method}, lag {place.staleness}"
        print(f"{where}: {len(runs)} runs at {place.rate(rung):g}, from seed {seed} on", flush=True)
        if failed := run_grid(cells(runs), options, PlainView(PlainConsole())):
            raise RuntimeError(f"{failed} cells failed; see their errors with: vcpo-bench show {options.out}")


def cells(runs: Sequence[tuple[Place, float, int]]) -> list[PlannedCell]:
    """The cells of these runs, which are of one place and one rung."""
    place, rung, _ = runs[0]
    spec = GridSpec(
        methods=(place.method,),
        staleness=(place.staleness,),
        seeds=tuple(seed for *_, seed in runs),
        tasks=(place.task,),
        lrs=(place.rate(rung),),
        settings=CellSettings(record="diagnostics", steps=STEPS),
        controls=False,
    )
    return plan_grid(spec)


def ended(out: Path) -> Tables:
    """The runs of a results folder."""
    return Tables.of(out) if ended_keys(out) else Tables.empty()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=32)
    given = parser.parse_args()
    grow(Tables.read(FOLDER), RunOptions(given.results, given.jobs, stack=given.stack))


if __name__ == "__main__":
    main()
