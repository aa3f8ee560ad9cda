"""What the study of the third task runs; docs/studies/third-task/registration.md says why."""

from __future__ import annotations

from pathlib import Path

from phase_study.contrasts import MATCHED, SHUFFLED
from phase_study.design import Plan

PLAN = Plan(("walk-eos",), ("reinforce", "tis", "clip", "vespo", "vcpo", MATCHED, SHUFFLED))
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies" / "third-task"
RUNS = FOLDER / "runs.csv"
