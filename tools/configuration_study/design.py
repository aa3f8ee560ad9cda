"""What the study of configurations reads and asks; docs/studies/configurations/registration.md says why."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.analysis.prediction.panel import MATCH

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
FOLDER = STUDIES / "configurations"
MAIN, FIXED = "phase", "step-rules"
"""The study that questions 1 and 2 are asked of, and the one whose learning rates were fixed beforehand."""
READ = (MAIN, FIXED, "every-method", "cures")
"""The studies whose runs the packaged detectors are tried on."""
SEEDS_READ = range(4, 8)
"""Seeds of the main study whose updates shipped when this one was made."""
REPEATED = {"0 to 3": range(4), "0 to 7": range(8)}
"""Seeds that questions 1 and 2 are asked of once more."""
TUNED = STUDIES / "calibration" / "cells.csv"
"""The runs that tuned them."""
LEAST_LAG = 2

LEADS = (5, 10, 20, 50)
CONTROLS = {"task, lag": MATCH, "and method": (*MATCH, "method"), "and learning rate": (*MATCH, "method", "lr")}
"""What a control shares with its case, besides the update."""
WIDE, WITHIN, SEEDS = CONTROLS
OTHERS = "and method, another seed"
"""Not registered: a search never goes back above a rate that its seed failed at, so that pairs of one seed are easy."""
RATE = "lr"
RIVALS = {WIDE: ("reward_low", "reward_drop", "kl", RATE), WITHIN: (RATE,), OTHERS: (RATE,)}
"""Signals that ESS is compared with, by what controls share."""
UNIT = ("task", "regime", "method")
"""What is taken to be independent."""
WARMED = 20
"""Updates until the learning rate has risen."""
BAR = 0.6
MARGIN = 0.05
PROMISE = 2.2
"""The upper end of the alarms per 1,000 updates of healthy runs that the calibration measured."""
ALL = "all"
"""Of all tasks together."""
