"""Detectors with their measured error rates, as `analyze prediction` exports them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.errors import UsageError

DEFAULTS = Path(__file__).with_name("default_detectors.json")
"""The detectors of the package, the best first."""

LEAST_RUNS = 15
"""Collapsed, and healthy, held-out runs that a rate needs; with fewer it counts as not measured."""


class Rate(NamedTuple):
    """A measured value with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """A detector, and what is known of its errors from runs that did not choose its threshold.

    Attributes:
        detector: The detector.
        false_alarms: Alarm episodes per 1,000 updates of healthy runs; None: not measured.
        recall: Share of collapses with an alarm in time; None: not measured.
        median_lead: Updates from alarm to collapse, among those caught; None: not measured.
        study: Where these numbers come from.
        n_collapsed: Held-out runs that collapsed there.
        n_healthy: Held-out runs that did not.
    """

    detector: Detector
    false_alarms: Rate | None
    recall: Rate | None
    median_lead: float | None
    study: str
    n_collapsed: int
    n_healthy: int

    @property
    def words(self) -> str:
        """The measured false-alarm rate and its origin, as a phrase."""
        runs = f"{self.study}: {self.n_collapsed} collapsed and {self.n_healthy} healthy runs"
        if self.false_alarms is None:
            return f"rate not measured ({runs})"
        value, low, high = self.false_alarms
        return f"false alarms per 1,000 healthy updates: {value:.2g} [{low:.2g}, {high:.2g}] ({runs})"


def load_calibrations(path: str | Path = DEFAULTS) -> tuple[Calibration, ...]:
    """The detectors of a file that `analyze prediction` exported, by default those of the package.

    Raises:
        UsageError: The file cannot be read, or names a signal that does not exist.
    """
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(entries, list) or not entries:
            raise ValueError("not a list with entries")
        found = tuple(_calibration(entry) for entry in entries)
    except OSError as error:
        raise UsageError(f"detectors {path}: cannot be read ({error.strerror}); name an exported file") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"detectors {path}: not a file of detectors ({error}); export it again") from error
    for one in found:
        SIGNALS.get(one.detector.signal)
    return found


def _calibration(entry: Mapping[str, Any]) -> Calibration:
    """One entry; a rate from too few runs is dropped, whoever wrote it."""
    detector = Detector(entry["signal"], entry["window"], float(entry["threshold"]), entry["persistence"])
    enough = min(entry["n_collapsed"], entry["n_healthy"]) >= LEAST_RUNS
    false_alarms, recall = entry["false_alarms_per_1000_healthy_updates"], entry["recall"]
    return Calibration(
        detector,
        Rate(*false_alarms) if enough and false_alarms else None,
        Rate(*recall) if enough and recall else None,
        entry["median_lead"] if enough else None,
        entry["study"],
        entry["n_collapsed"],
        entry["n_healthy"],
    )
