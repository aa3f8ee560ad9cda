"""What the study of tool use runs; docs/studies/tool-use/registration.md says why."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from arm_study.arms import Arm, main

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

METHODS = ("reinforce", "tis", "clip", "vespo", "vcpo")
TASKS = ("guess", "lookup")
LAGS = (0, 8)
SEEDS = range(5)
STEPS = 240
SINCE = 20
"""First update that counts: the learning rate has risen."""
ARMS = (Arm("all", GridSpec(METHODS, LAGS, SEEDS, TASKS, (3e-4,), settings=CellSettings(steps=STEPS), controls=False)),)

__all__ = ["ARMS", "LAGS", "METHODS", "SEEDS", "SINCE", "STEPS", "TASKS", "main"]
