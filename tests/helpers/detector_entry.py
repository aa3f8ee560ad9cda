"""One detector as `detectors.json` has it."""

from typing import Any

ENTRY: dict[str, Any] = {
    "signal": "ess",
    "window": 3,
    "threshold": 1.5,
    "persistence": 2,
    "false_alarms_per_1000_healthy_updates": [2.0, 1.0, 4.0],
    "recall": [0.8, 0.6, 0.9],
    "median_lead": 30,
    "study": "docs/studies/calibration",
    "n_collapsed": 20,
    "n_healthy": 40,
}
