"""Detectors at work while a run trains: fed one update at a time, speaking with the error rate they were measured at.

The signals and detectors are those of `analyze prediction`, and their values are the same bits: what a study measured
on recorded runs is what speaks here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.monitoring.detectors import Detector, DetectorStream, read_detector
from vcpo_bench.analysis.monitoring.signals import SIGNALS, Signal
from vcpo_bench.errors import UsageError
from vcpo_bench.records import Level
from vcpo_bench.records.steps import STEPS

DEFAULTS = Path(__file__).with_name("default_detectors.json")
"""Detectors with their measured rates, as `analyze prediction` exports them, the best first."""

LEAST_RUNS = 15
"""Collapsed and healthy held-out runs that a rate needs; with fewer it is not a number."""


class Rate(NamedTuple):
    """A measured value with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """A detector, and what is known of its errors from runs that did not choose its threshold.

    Attributes:
        detector: What speaks.
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
        """The measured rate and its origin, in words."""
        runs = f"{self.study}: {self.n_collapsed} collapsed and {self.n_healthy} healthy runs"
        if self.false_alarms is None:
            return f"rate not measured ({runs})"
        value, low, high = self.false_alarms
        return f"false alarms per 1,000 healthy updates: {value:.2g} [{low:.2g}, {high:.2g}] ({runs})"


def load_calibrations(path: Path = DEFAULTS) -> tuple[Calibration, ...]:
    """The detectors of a file that `analyze prediction` exported, by default those of the package.

    Raises:
        UsageError: The file cannot be read, or names a signal that does not exist.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list) or not entries:
            raise ValueError("not a list with entries")
        return tuple(_calibration(entry) for entry in entries)
    except OSError as error:
        raise UsageError(f"detectors {path}: cannot be read ({error.strerror}); name an exported file") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"detectors {path}: not a file of detectors ({error}); export it again") from error


def _calibration(entry: Mapping[str, Any]) -> Calibration:
    """One entry; a rate from too few runs is dropped, whoever wrote it."""
    detector = Detector(entry["signal"], entry["window"], float(entry["threshold"]), entry["persistence"])
    signal_of(detector)
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


def signal_of(detector: Detector) -> Signal:
    """The signal a detector listens to.

    Raises:
        UsageError: There is none of that name.
    """
    if detector.signal not in SIGNALS:
        raise UsageError(f"no signal is called {detector.signal!r}; signals: {', '.join(SIGNALS)}")
    return SIGNALS[detector.signal]


@dataclass(frozen=True)
class Alarm:
    """A detector that speaks.

    Attributes:
        calibration: The detector and its measured errors.
        step: The update after which it speaks.
        score: Trailing mean of its signal.
    """

    calibration: Calibration
    step: int
    score: float

    def __str__(self) -> str:
        """What speaks, how loudly, and how often it is wrong."""
        return f"{_spoken(self.calibration.detector, self.score, self.step)}; {self.calibration.words}"


def _spoken(detector: Detector, score: float, step: int) -> str:
    streak = f" for {detector.persistence} updates" if detector.persistence > 1 else ""
    mean = f" (mean of {detector.window} updates)" if detector.window > 1 else ""
    return f"{detector.signal}{mean} {score:.4g} > {detector.threshold:.4g}{streak} at step {step}"


RECENT = 1024
"""Updates on which a signal with a short memory is computed: with fewer in a run it is the bits of the recorded run."""


class Rows:
    """The updates of a run so far, column by column, with room to grow.

    Args:
        names: Columns of `records.steps.STEPS` to keep.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: position for position, name in enumerate(dict.fromkeys(names))}
        self._values = np.empty((len(self._names), 256))
        self._length = 0

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one update; what is absent, None or not finite is missing, as in tables read back."""
        if self._length == self._values.shape[1]:
            self._values = np.concatenate([self._values, np.empty_like(self._values)], axis=1)
        for name, position in self._names.items():
            value = row.get(name)
            number = np.nan if value is None else float(value)
            self._values[position, self._length] = number if np.isfinite(number) else np.nan
        self._length += 1

    def latest(self, signal: Signal) -> float:
        """The signal after the latest update."""
        begin = 0 if signal.memory is None else max(self._length - max(RECENT, signal.memory), 0)
        return float(signal.of(_Part(self._names, self._values[:, begin : self._length]))[-1])


@dataclass(frozen=True)
class _Part:
    """Some updates in order, as `analysis.monitoring.signals.Updates`: values [columns, S] and their names."""

    names: Mapping[str, int]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def __contains__(self, name: object, /) -> bool:
        return name in self.names

    def __getitem__(self, name: str, /) -> NDArray[np.float64]:
        return np.asarray(self.values[self.names[name]])


class AlarmPanel:
    """Several detectors over the same run.

    Args:
        calibrations: The detectors with what is known of them.
        also: Further signals to follow.

    Attributes:
        columns: Columns of `records.steps.STEPS` that the signals are computed from.
        values: The signals after the latest update; NaN: cannot be said.
        silent: Those among the detectors' signals that cannot be said: these detectors cannot speak.
    """

    def __init__(self, calibrations: Iterable[Calibration], also: Iterable[str] = ()) -> None:
        self._streams = [(one, DetectorStream(one.detector)) for one in calibrations]
        self._heard = {one.detector.signal: signal_of(one.detector) for one, _ in self._streams}
        self._signals = self._heard | {name: SIGNALS[name] for name in also}
        self.columns = {name for signal in self._signals.values() for name in signal.columns}
        self._rows = Rows(sorted(self.columns))
        self._step = -1
        self.values: dict[str, float] = {}
        self.silent: tuple[str, ...] = ()

    def feed(self, row: Mapping[str, Any]) -> tuple[Alarm, ...]:
        """Take the next update, columns of `records.steps.STEPS`; the detectors that speak after it."""
        self._rows.append(row)
        self.values = {name: self._rows.latest(signal) for name, signal in self._signals.items()}
        self.silent = tuple(name for name in self._heard if np.isnan(self.values[name]))
        spoken = [(one, stream) for one, stream in self._streams if stream.feed(self.values[one.detector.signal])]
        self._step += 1
        return tuple(Alarm(one, self._step, stream.score) for one, stream in spoken)


class StopOnAlarm:
    """Ends a cell when one detector speaks: a `StepObserver` of `bench`, made from a cell's `stop`.

    Args:
        text: A detector, as `Detector.text` writes it.

    Raises:
        UsageError: The text is no detector, or its signal does not exist.
    """

    def __init__(self, text: str) -> None:
        self._stream = DetectorStream(read_detector(text))
        self._signal = signal_of(self._stream.detector)
        self._rows = Rows(self._signal.columns)

    def observe(self, row: Mapping[str, Any]) -> str:
        """Take the row of `records.steps.STEPS` just recorded; the alarm in words, or nothing."""
        self._rows.append(row)
        if not self._stream.feed(self._rows.latest(self._signal)):
            return ""
        return f"alarm: {_spoken(self._stream.detector, self._stream.score, int(row['step']))}"


def stop_default(level: Level) -> Calibration:
    """What ends a run with `--stop-on-alarm`: the best of the package's detectors that this run can feed.

    Args:
        level: Record level of the run.

    Raises:
        UsageError: All of them need columns that this level does not record.
    """
    absent = {c.name for c in STEPS if c.level != "basic"} if level == "basic" else set()
    for one in load_calibrations():
        if not absent & set(signal_of(one.detector).columns):
            return one
    raise UsageError("--stop-on-alarm: every detector needs more than --record basic writes; add --record diagnostics")
