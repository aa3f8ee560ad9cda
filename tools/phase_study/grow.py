"""Makes the runs of the phase study, wave by wave, until every search has ended. Stopped, the same call goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ended_keys
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole

from .design import LADDER, STEPS, Plan, Unit, wanted
from .tables import joined, outcomes, run_table


def grow(out: Path, known: pd.DataFrame, seeds: Sequence[int], jobs: int, stack: int, plan: Plan) -> None:
    """Run until every unit of these seeds has its boundary.

    Args:
        out: Results folder.
        known: Runs that need not be made again.
        seeds: In this order; all searches of a seed end before the next seed begins.
        jobs: Worker processes.
        stack: Cells trained as one stack.
        plan: Which units a seed has.

    Raises:
        RuntimeError: Cells ended in an error, or cannot be judged, so that their units would stay open for ever.
    """
    made: list[tuple[Unit, int]] = []
    while runs := wanted(seeds, outcomes(joined(known, ended(out))), plan):
        if again := sorted(set(runs) & set(made)):
            raise RuntimeError(f"the rule of collapse does not apply to {again[0]}")
        made = runs
        print(f"seed {runs[0][0].seed}: {len(runs)} searches go on", flush=True)
        view = PlainView(PlainConsole())
        if failed := run_grid(cells(runs), RunOptions(out, jobs, stack=stack), view):
            raise RuntimeError(f"{failed} cells failed; see their errors with: vcpo-bench show {out}")


def cells(runs: Sequence[tuple[Unit, int]]) -> list[PlannedCell]:
    """The cells of these runs, lenders of step scales included, each once."""
    planned: dict[str, PlannedCell] = {}
    for unit, rung in runs:
        spec = GridSpec(
            methods=(unit.method,),
            staleness=(unit.staleness,),
            seeds=(unit.seed,),
            tasks=(unit.task,),
            lrs=(LADDER[rung],),
            settings=CellSettings(record="diagnostics", steps=STEPS),
            controls=False,
        )
        planned |= {cell.key: cell for cell in plan_grid(spec)}
    return list(planned.values())


def ended(out: Path) -> pd.DataFrame:
    """The runs of a results folder. Those that only lend step scales count as well."""
    return run_table(out) if ended_keys(out) else pd.DataFrame()
