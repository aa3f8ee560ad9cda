"""The command line of a study that searches for boundaries by the phase study's rule."""

from __future__ import annotations

import argparse
from pathlib import Path

from vcpo_bench.bench.cells import flag_values

from .design import Plan
from .grow import grow
from .tables import shipped


def main(description: str | None, runs: Path, plan: Plan) -> None:
    """Read the arguments and run.

    Args:
        description: Of the program.
        runs: The shipped table, whose runs are not made again.
        plan: Which units a seed has.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", default="0-7")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=32)
    given = parser.parse_args()
    grow(given.results, shipped(runs), flag_values.seeds(given.seeds), given.jobs, given.stack, plan)
