"""The runs of the third task: `python tools/third_task_study/run.py RESULTS [--seeds 0-7] [--jobs 1] [--stack 16]`.

Makes the runs that the shipped table lacks, seed by seed. Stopped at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from phase_study.grow import grow
from phase_study.tables import shipped

from third_task_study.design import PLAN, RUNS
from vcpo_bench.bench.cells import flag_values


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", default="0-7")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=16)
    given = parser.parse_args()
    grow(given.results, shipped(RUNS), flag_values.seeds(given.seeds), given.jobs, given.stack, PLAN)


if __name__ == "__main__":
    main()
