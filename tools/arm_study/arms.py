"""Studies made of arms: grids that differ in one setting, each in a results folder of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole


@dataclass(frozen=True)
class Arm:
    """One grid of a study.

    Attributes:
        name: Of its results folder, and of its rows.
        spec: Its cells.
    """

    name: str
    spec: GridSpec


def run_arms(arms: Sequence[Arm], out: Path, jobs: int) -> None:
    """Make the runs that are missing, arm by arm. Stopped at any time, the same call goes on.

    Args:
        arms: Of the study.
        out: Folder for the results folders.
        jobs: Worker processes.

    Raises:
        RuntimeError: Cells ended in an error.
    """
    for arm in arms:
        folder = out / arm.name
        print(f"{arm.name}: {len(plan_grid(arm.spec))} cells", flush=True)
        if failed := run_grid(plan_grid(arm.spec), RunOptions(folder, jobs), PlainView(PlainConsole())):
            raise RuntimeError(f"{failed} cells failed; see their errors with: vcpo-bench show {folder}")


def main(arms: Sequence[Arm], description: str | None) -> None:
    """The command line of a study's `run.py`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    run_arms(arms, given.results, given.jobs)
