"""Online detectors: take one update at a time and report every alarm with the detector's measured false-alarm rate.

Signals and detectors are those of `lab analyze prediction`, and their values are bit-identical: what a study measured
on recorded runs is what raises alarms here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.arrays import as_floats
from vcpo_bench.analysis.monitoring.calibration import REWARD_RANGES, Calibration, RewardRange, lie_in
from vcpo_bench.analysis.monitoring.detectors import Detector, DetectorStream
from vcpo_bench.analysis.monitoring.long_responses import too_long
from vcpo_bench.analysis.monitoring.reward_noise import beyond_chance
from vcpo_bench.analysis.monitoring.signal import SIGNALS, Signal

REWARDS = ("sampled_reward", "batch_reward")
"""Columns that hold rewards."""
RECENT = 1024
"""Updates that a signal with a short memory is computed from; in a shorter run, those of the recorded run, bit for
bit."""


@dataclass(frozen=True)
class Alarm:
    """An alarm of one detector.

    Attributes:
        calibration: The detector and its measured errors.
        step: The update after which it is raised.
        score: Trailing mean of its signal.
    """

    calibration: Calibration
    step: int
    score: float

    def __str__(self) -> str:
        """Which signal, how high, and how often this detector is wrong."""
        return f"{alarm_text(self.calibration.detector, self.score, self.step)}; {self.calibration.words}"


def alarm_text(detector: Detector, score: float, step: float) -> str:
    """`ess (mean of 3 updates) 2.303 > 1.5 for 2 updates at step 1`."""
    signal, _, beyond = detector.words.partition(" > ")
    return f"{signal} {score:.4g} > {beyond} at step {step:.15g}"


class GrowingTable:
    """The updates of a run so far, column by column.

    Args:
        names: Columns of `records.steps.STEPS` to keep.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: position for position, name in enumerate(dict.fromkeys(names))}
        self._values = np.empty((len(self._names), 256))
        self._length = 0

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one update; what is absent, None or not finite is missing, as in tables that are read back."""
        if self._length == self._values.shape[1]:
            self._values = np.concatenate([self._values, np.empty_like(self._values)], axis=1)
        for name, position in self._names.items():
            value = row.get(name)
            number = np.nan if value is None else float(as_floats(value))
            self._values[position, self._length] = number if np.isfinite(number) else np.nan
        self._length += 1

    def column(self, name: str) -> NDArray[np.float64]:
        """Every value so far [S]; NaN: missing."""
        return np.asarray(self._values[self._names[name], : self._length])

    def latest(self, signal: Signal) -> float:
        """The signal after the latest update."""
        begin = 0 if signal.memory is None else max(self._length - max(RECENT, signal.memory), 0)
        return float(signal.of(_Stretch(self._names, self._values[:, begin : self._length]))[-1])


@dataclass(frozen=True)
class _Stretch:
    """Some updates in order, as a signal reads them: values [columns, S] and the columns' names."""

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
        also: Names of further signals to follow.

    Attributes:
        columns: Columns of `records.steps.STEPS` that the signals are computed from.
        values: The signals after the latest update; NaN: cannot be computed.
        silent: Those among the detectors' signals that cannot be computed, or whose detectors were all tuned on another
            quantity or on rewards in another range than any seen so far, or hear nothing in responses as long as the
            latest: these cannot raise an alarm.

    Raises:
        UsageError: A signal does not exist.
    """

    def __init__(self, calibrations: Iterable[Calibration], also: Iterable[str] = ()) -> None:
        self._streams = [(one, DetectorStream(one.detector)) for one in calibrations]
        self._watched = {one.detector.signal: SIGNALS.get(one.detector.signal)() for one, _ in self._streams}
        self._signals = self._watched | {name: SIGNALS.get(name)() for name in also}
        self.columns = {name for signal in self._signals.values() for name in signal.columns}
        self._table = GrowingTable(sorted(self.columns))
        self._foreign: set[RewardRange] = set()
        self._step = -1
        self.values: dict[str, float] = {}
        self.silent: tuple[str, ...] = ()

    def feed(self, row: Mapping[str, Any]) -> tuple[Alarm, ...]:
        """Take the next update, columns of `records.steps.STEPS`; returns the alarms after it."""
        self._table.append(row)
        self.values = {name: self._table.latest(signal) for name, signal in self._signals.items()}
        rewards = [value for name in REWARDS if (value := row.get(name)) is not None and np.isfinite(value)]
        self._foreign |= {name for name in REWARD_RANGES if not lie_in(rewards, name)}
        length = row.get("length_mean")
        lengths = np.array([np.nan if length is None else float(as_floats(length))])
        heard = [(one, stream, self._value(one, lengths)) for one, stream in self._streams if self._fits(one)]
        able = {one.detector.signal for one, _, value in heard if not np.isnan(value)}
        self.silent = tuple(name for name in self._watched if name not in able)
        raised = [(one, stream) for one, stream, value in heard if stream.feed(value)]
        self._step += 1
        return tuple(Alarm(one, self._step, stream.score) for one, stream in raised)

    def _value(self, one: Calibration, lengths: NDArray[np.float64]) -> float:
        """What a detector hears of the latest update, whose responses have these mean lengths [1]."""
        signal, value = self._watched[one.detector.signal], self.values[one.detector.signal]
        if too_long(one, signal, lengths)[0]:
            return np.nan
        if value > one.detector.threshold and "sampled_reward" in signal.columns:
            rewards = self._table.column("sampled_reward")
            return float(beyond_chance(signal, np.full(rewards.shape, value), rewards, one.detector.threshold)[-1])
        return value

    def _fits(self, one: Calibration) -> bool:
        """Whether a detector was tuned on what it would hear: the exact quantities, and rewards in the same range."""
        columns = self._watched[one.detector.signal].columns
        return not set(columns) & one.inputs.keys() and not (
            one.reward in self._foreign and set(columns) & set(REWARDS)
        )
