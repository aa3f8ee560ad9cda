"""Ending a cell at the alarm of one detector (`run --stop-on-alarm`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcpo_bench.analysis.monitoring.alarm_panel import GrowingTable, alarm_text
from vcpo_bench.analysis.monitoring.calibration import Calibration, load_calibrations
from vcpo_bench.analysis.monitoring.detectors import DetectorStream, read_detector
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.errors import UsageError
from vcpo_bench.records import Level
from vcpo_bench.records.steps import STEPS


class StopOnAlarm:
    """Observes the updates of a cell and names the alarm that ends it; made from the cell's `stop`.

    Args:
        text: A detector, as `Detector.text` writes it.

    Raises:
        UsageError: The text is no detector, or its signal does not exist.
    """

    def __init__(self, text: str) -> None:
        self._stream = DetectorStream(read_detector(text))
        self._signal = SIGNALS.get(self._stream.detector.signal)()
        self._table = GrowingTable(self._signal.columns)

    def observe(self, row: Mapping[str, Any]) -> str:
        """Take the row of `records.steps.STEPS` just recorded; returns the alarm as a phrase, or an empty string."""
        self._table.append(row)
        if not self._stream.feed(self._table.latest(self._signal)):
            return ""
        return f"alarm: {alarm_text(self._stream.detector, self._stream.score, int(row['step']))}"


def stop_detector(text: str, level: Level) -> Calibration:
    """The detector that ends a run with `--stop-on-alarm`, with what is known of its errors.

    Args:
        text: A detector, as `Detector.text` writes it; empty: `stop_default`.
        level: Record level of the run.

    Raises:
        UsageError: The text is no detector, its signal does not exist, or the level does not record what it needs.
    """
    if not text:
        return stop_default(level)
    detector = read_detector(text)
    if absent := sorted(_absent(level) & set(SIGNALS.get(detector.signal).columns)):
        raise UsageError(f"--detector {text}: needs the column {absent[0]}; add --record diagnostics")
    known = (one for one in load_calibrations() if one.detector == detector)
    return next(known, Calibration(detector, None, None, None, "given by you", 0, 0))


def _absent(level: Level) -> set[str]:
    """The columns that a record level leaves out."""
    return {column.name for column in STEPS if column.level != "basic"} if level == "basic" else set()


def stop_default(level: Level) -> Calibration:
    """What ends a run with `--stop-on-alarm`: the best of the package's detectors that this run can feed.

    Raises:
        UsageError: All of them need columns that this level does not record.
    """
    absent = _absent(level)
    for one in load_calibrations():
        if not absent & set(SIGNALS.get(one.detector.signal).columns):
            return one
    raise UsageError("--stop-on-alarm: every detector needs more than --record basic writes; add --record diagnostics")
