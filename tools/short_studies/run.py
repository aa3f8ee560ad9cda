"""The runs of the short studies: `python tools/short_studies/run.py RESULTS [--studies NAMES] [--jobs 1] [--stack 32]`.

Makes the runs that the shipped tables lack, study after study, each in RESULTS/NAME. Stopped at any time, the same
command goes on. `--plan` only prints what would be run. Afterwards `python tools/short_studies/page.py RESULTS` makes
the pages.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from short_studies.catalog import chosen
from short_studies.collect import lacking, shipped
from short_studies.study import Study
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--studies", default="", help="names, such as step-rules,cures; default: all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=32)
    parser.add_argument("--plan", action="store_true")
    given = parser.parse_args()
    try:
        studies = chosen(given.studies)
        if given.plan:
            print(plan(studies))
            return
        for study in studies:
            make(study, RunOptions(given.results / study.name, given.jobs, stack=given.stack))
    except UsageError as error:
        parser.error(str(error))


def plan(studies: list[Study]) -> str:
    """One line per study: runs and core-minutes."""
    counted = [(study.name, len(study.cells()), study.seconds) for study in studies]
    lines = [f"{name}: {runs} runs, {runs * seconds / 60:.0f} core-minutes" for name, runs, seconds in counted]
    total = sum(runs * seconds for _, runs, seconds in counted) / 60
    return "\n".join([*lines, f"together {total:.0f} core-minutes"])


def make(study: Study, options: RunOptions) -> None:
    """Make the runs that a study's table lacks. A run that ends in an error is told, and the next study goes on."""
    cells = lacking(study, shipped(study))
    if not cells:
        print(f"{study.name}: every run is in its table", flush=True)
        return
    print(f"{study.name}: {len(cells)} runs in {options.out}", flush=True)
    if failed := run_grid(cells, options, PlainView(PlainConsole())):
        print(f"{failed} runs ended in an error; see: vcpo-bench show {options.out}", flush=True)


if __name__ == "__main__":
    main()
