"""Detectors for future runs, with error rates measured on runs that did not choose their thresholds."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.prediction.alarm_outcomes import clock
from vcpo_bench.analysis.prediction.operating_points import OPERATING
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel
from vcpo_bench.analysis.prediction.thresholds import TunedDetector, levels, peaks, tune


def detectors_json(panel: Panel, episodes: pd.DataFrame, study: str) -> str:
    """One entry per signal that could be tuned, as `analysis.monitoring.calibration.load_calibrations` reads it.

    The setting is tuned on all runs at the stated operating point; the rates beside it are those of the same procedure
    on held-out seeds. They are sorted by recall minus the share of healthy runs they alarm; those with too few
    runs to be measured come last.
    """
    time = clock(panel)
    everyone = np.ones(len(panel.runs), dtype=bool)
    measured = {row["signal"]: row for row in episodes.to_dict("records")}
    entries = []
    for name in (one for one in panel.recorded() if one in SIGNALS.kinds):  # a monitor computes no other
        choices = levels(panel, name)
        tuned = tune(choices, peaks(choices, time), time, panel, everyone, OPERATING)
        if tuned and math.isfinite(tuned.threshold) and name in measured:
            entries.append((_worth(measured[name]), _entry(name, tuned, measured[name], study)))
    entries.sort(key=lambda pair: -pair[0])
    return json.dumps([entry for _, entry in entries], indent=1) + "\n"


def _worth(row: dict[Any, Any]) -> float:
    return -1.0 if row["verdict"] == TOO_FEW else float(row["recall"] - row["healthy_alarmed"])


def _entry(name: str, tuned: TunedDetector, row: dict[Any, Any], study: str) -> dict[str, Any]:
    few = row["verdict"] == TOO_FEW
    lead = None if few or math.isnan(row["lead_median"]) else float(row["lead_median"])
    return {
        "signal": name,
        "window": tuned.window,
        "threshold": tuned.threshold,
        "persistence": tuned.persistence,
        "false_alarms_per_1000_healthy_updates": None if few else _rate(row, "false_per_1000"),
        "recall": None if few else _rate(row, "recall"),
        "median_lead": lead,
        "study": study,
        "n_collapsed": int(row["n_collapsed"]),
        "n_healthy": int(row["n_healthy"]),
    }


def _rate(row: dict[Any, Any], column: str) -> list[float]:
    return [float(row[key]) for key in (column, f"{column}_low", f"{column}_high")]
