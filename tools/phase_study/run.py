"""The phase study: `python tools/phase_study/run.py RESULTS [--seeds 0-7] [--jobs 1] [--stack 32]`.

Makes the runs that the shipped table lacks. Stopped at any time, the same command goes on; so does one with another
RESULTS once `page.py` has added the runs of this one to the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from phase_study.command import main
from phase_study.design import PLAN
from phase_study.tables import RUNS

if __name__ == "__main__":
    main(__doc__, RUNS, PLAN)
