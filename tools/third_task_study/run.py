"""The runs of the third task: `python tools/third_task_study/run.py RESULTS [--seeds 0-7] [--jobs 1] [--stack 32]`.

Makes the runs that the shipped table lacks, seed by seed. Stopped at any time, the same command goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from phase_study.command import main

from third_task_study.design import PLAN, RUNS

if __name__ == "__main__":
    main(__doc__, RUNS, PLAN)
