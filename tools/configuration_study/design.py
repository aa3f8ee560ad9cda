"""What the study of configurations reads and asks; docs/studies/configurations/registration.md says why."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.analysis.prediction.panel import MATCH

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
FOLDER = STUDIES / "configurations"
MAIN = "phase"
"""The study that questions 1 and 2 are asked of."""
READ = (MAIN, "step-rules", "every-method", "cures", "cold-start")
"""The studies whose runs the packaged detectors are tried on."""
LEAST_LAG = 2

LEADS = (5, 10, 20, 50)
CONTROLS = {"task, lag": MATCH, "and method": (*MATCH, "method"), "and learning rate": (*MATCH, "method", "lr")}
"""What a control shares with its case, besides the update."""
WIDE, WITHIN, SEEDS = CONTROLS
RIVALS = {WIDE: ("reward_low", "kl"), WITHIN: ("lr",)}
"""Signals that ESS is compared with, by what controls share."""
BAR = 0.6
MARGIN = 0.05
PROMISE = 0.25
"""The upper end of the share of healthy runs in which any packaged detector speaks, as it is advertised."""
ALL = "all"
"""Of all tasks together."""
