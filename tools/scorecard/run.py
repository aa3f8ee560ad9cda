"""The runs of the scorecard: `python tools/scorecard/run.py RESULTS [--jobs 1] [--stack 32] [--facts 1,3]`.

Makes the runs that the shipped tables lack, in the order of the registration, and adds them to the tables. Stopped at
any time, the same command goes on; with another RESULTS too, after the fact that was finished last. To begin anew,
delete the tables. `--plan` only prints what would be run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scorecard.catalog import all_facts
from scorecard.collect import collect
from scorecard.fact import Fact
from scorecard.places import DOCS, FOLDER
from scorecard.plan import plan_table, stages
from scorecard.tables import Tables
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.terminal.live import PlainView
from vcpo_bench.reports.terminal.plain_console import PlainConsole


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=32)
    parser.add_argument("--facts", default="", help="numbers, such as 1,3; default: all")
    parser.add_argument("--plan", action="store_true")
    given = parser.parse_args()
    try:
        facts = chosen(given.facts)
        if given.plan:
            print(plan_table(facts))
        else:
            run(facts, RunOptions(given.results, given.jobs, stack=given.stack))
    except UsageError as error:
        parser.error(str(error))


def chosen(numbers: str) -> list[Fact]:
    """The facts asked for, in the order of their runs.

    Raises:
        UsageError: There is no fact with that number.
    """
    facts = all_facts()
    wanted = [part.strip() for part in numbers.split(",") if part.strip()]
    known = {str(fact.number) for fact in facts}
    if unknown := sorted(set(wanted) - known):
        raise UsageError(f"--facts {numbers}: there is no fact {unknown[0]}; known: 1 to {len(known)}")
    return [fact for fact in facts if not wanted or str(fact.number) in wanted]


def run(facts: list[Fact], options: RunOptions) -> None:
    """Make the runs, fact after fact, and write the tables after each.

    Raises:
        UsageError: As `run_grid`, or cells ended in an error.
    """
    for stage in stages(facts):
        cells = Tables.read(FOLDER, DOCS).without_runs(stage.cells)
        if not cells:
            continue
        print(f"fact {stage.fact.number}: {stage.fact.statement}", flush=True)
        view = PlainView(PlainConsole())
        failed = run_grid(cells, options, view)
        print(f"{collect(options.out, FOLDER, all_facts())} runs in {FOLDER}", flush=True)
        if failed:
            raise UsageError(f"{failed} cells failed; see their errors with: vcpo-bench show {options.out}")


if __name__ == "__main__":
    main()
