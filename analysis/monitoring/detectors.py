"""Alarms from one signal of a run: a trailing mean against a threshold, over a whole series or one update at a time.

Nothing here looks ahead: the alarm at update t depends on the values up to t alone. A detector tuned on recorded runs
is the one that would have spoken while they ran.
"""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.errors import UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Detector:
    """Speaks when the trailing mean of a signal has stayed above a threshold.

    Attributes:
        signal: Name of the signal, oriented: greater is more dangerous.
        window: Updates that the mean reaches back, the newest included; fewer at the beginning of a run.
        threshold: In the signal's unit; the mean must be strictly greater.
        persistence: Consecutive updates above the threshold, the newest included, before it speaks.

    Raises:
        ValueError: `window` or `persistence` is less than 1, or `threshold` is NaN.
    """

    signal: str
    window: int
    threshold: float
    persistence: int = 1

    def __post_init__(self) -> None:
        if self.window < 1 or self.persistence < 1 or math.isnan(self.threshold):
            raise ValueError(f"{self}: window and persistence must be at least 1, threshold a number")

    @property
    def text(self) -> str:
        """`ess(window=10,threshold=2.3,persistence=2)`: what `read_detector` reads."""
        return f"{self.signal}(window={self.window},threshold={self.threshold!r},persistence={self.persistence})"

    def scores(self, values: ArrayLike) -> Array:
        """Trailing mean of a series [S] at each update.

        NaN is a missing value and is left out; an infinite value makes the mean infinite while it is in the window.

        Returns:
            Shape [S]; NaN where the window holds no value, or infinities of both signs.
        """
        series = np.asarray(values, dtype=np.float64)
        present = ~np.isnan(series)
        filled = np.where(present, series, 0.0)
        total, number = np.zeros(series.size), np.zeros(series.size)
        for back in range(min(self.window, series.size) - 1, -1, -1):  # oldest first, as a stream adds them
            with np.errstate(invalid="ignore", over="ignore"):
                total[back:] += filled[: series.size - back]
            number[back:] += present[: series.size - back]
        return np.where(number > 0, total / np.maximum(number, 1), np.nan)

    def alarms(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Whether it speaks at each update of a series [S]. A score that is NaN ends a streak."""
        beyond = self.scores(values) > self.threshold
        position = np.arange(beyond.size)
        last_below = np.maximum.accumulate(np.where(beyond, -1, position))
        return np.asarray(position - last_below >= self.persistence)


_TEXT = re.compile(r"([\w-]+)\(window=(\d+),threshold=([^,()]+),persistence=(\d+)\)")


def read_detector(text: str) -> Detector:
    """The detector that `Detector.text` wrote, to the last bit.

    Raises:
        UsageError: The text is not of that form.
    """
    match = _TEXT.fullmatch(text)
    try:
        if match:
            return Detector(match[1], int(match[2]), float(match[3]), int(match[4]))
    except ValueError:
        pass
    raise UsageError(f"detector {text!r}: write SIGNAL(window=10,threshold=2.3,persistence=2)")


class DetectorStream:
    """The same detector fed one value per update; scores and alarms equal those of the whole series, bit for bit.

    Args:
        detector: What to compute.

    Attributes:
        score: Trailing mean after the latest value; NaN before the first.
        alarm: Whether the detector speaks after the latest value.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.score = math.nan
        self.alarm = False
        self._values: deque[float] = deque(maxlen=detector.window)
        self._streak = 0

    def feed(self, value: float) -> bool:
        """Take the value of the next update and say whether the detector speaks."""
        self._values.append(float(value))
        total, number = 0.0, 0
        for one in self._values:
            if one == one:  # not NaN
                total += one
                number += 1
        self.score = total / number if number else math.nan
        self._streak = self._streak + 1 if self.score > self.detector.threshold else 0
        self.alarm = self._streak >= self.detector.persistence
        return self.alarm


class Episode(NamedTuple):
    """Alarms close together, counted as one: the positions of the first and the last of them."""

    first: int
    last: int


def episodes(alarms: ArrayLike, refractory: int) -> list[Episode]:
    """Merge alarms [S] into episodes: an alarm at most `refractory` updates after the one before belongs to it."""
    at = np.flatnonzero(np.asarray(alarms, dtype=bool))
    if at.size == 0:
        return []
    starts = np.flatnonzero(np.diff(at, prepend=at[0] - refractory - 1) > refractory)
    ends = np.append(starts[1:], at.size) - 1
    return [Episode(int(at[first]), int(at[last])) for first, last in zip(starts, ends, strict=True)]
