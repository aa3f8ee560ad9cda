"""Detectors: alarms from one signal of a run, over a whole recorded series or one update at a time.

Nothing here looks ahead: the alarm at update t depends on the values up to t alone. A detector tuned on recorded runs
gives the alarms it would have given while they ran.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_floats
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.naming.arguments import read_arguments
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import read_item
from vcpo_bench.naming.parameters import integer, number, parameter_of

Array = NDArray[np.float64]

_PARAMETERS = {
    "window": parameter_of(integer(1, minimum=1)),
    "threshold": parameter_of(number(0.0, write=repr)),
    "persistence": parameter_of(integer(1, minimum=1)),
}


@dataclass(frozen=True)
class Detector:
    """Raises an alarm while the trailing mean of a signal stays above a threshold.

    It is the only kind of detector there is, so there is no catalog of them: what differs is the signal.

    Attributes:
        signal: Name of the signal; greater values are more dangerous.
        window: Updates that the mean reaches back, the newest included; fewer at the beginning of a run.
        threshold: In the signal's unit; the mean must be strictly greater.
        persistence: Consecutive updates above the threshold, the newest included, before it raises an alarm.

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
        values = (f"{name}={parameter.write(getattr(self, name))}" for name, parameter in _PARAMETERS.items())
        return f"{self.signal}({','.join(values)})"

    @property
    def words(self) -> str:
        """`ess (mean of 10 updates) > 2.3 for 2 updates`: for people, with four digits of the threshold."""
        mean = f" (mean of {self.window} updates)" if self.window > 1 else ""
        streak = f" for {self.persistence} updates" if self.persistence > 1 else ""
        return f"{self.signal}{mean} > {self.threshold:.4g}{streak}"

    def scores(self, values: ArrayLike) -> Array:
        """Trailing mean of a series [S] at each update; NaN where the window holds no value."""
        return streamed_mean(as_floats(values), self.window)

    def alarms(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Whether there is an alarm at each update of a series [S]. A score that is NaN ends a streak."""
        beyond = self.scores(values) > self.threshold
        position = np.arange(beyond.size)
        last_below = np.maximum.accumulate(np.where(beyond, -1, position))
        return np.asarray(position - last_below >= self.persistence)


def read_detector(text: str) -> Detector:
    """The detector that a text describes: `ess(window=10,threshold=2.3,persistence=2)`, persistence 1 if absent.

    What `Detector.text` writes is read to the last bit. Whether the signal exists is not checked.

    Raises:
        ExpressionError: Points at the character that is wrong.
    """
    item = read_item(text)
    found = read_arguments(text, item, _PARAMETERS)
    absent = [name for name in ("window", "threshold") if name not in found]
    if absent or item.suffix is not None:
        problem = f"{absent[0]} is missing" if absent else "':' after the name of a signal"
        example = f"{item.name.text}(window=10,threshold=2.3,persistence=2)"
        raise ExpressionError(text, item.name.start + len(item.name.text), f"{problem}; write {example}")
    return Detector(item.name.text, **found)  # type: ignore[arg-type]


class DetectorStream:
    """A detector that takes one value per update; scores and alarms are bit-identical to those of the whole series.

    Attributes:
        score: Trailing mean after the latest value; NaN before the first.
        alarm: Whether there is an alarm after the latest value.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.score = math.nan
        self.alarm = False
        self._values: deque[float] = deque(maxlen=detector.window)
        self._streak = 0

    def feed(self, value: float) -> bool:
        """Take the value of the next update; returns whether there is an alarm."""
        self._values.append(float(as_floats(value)))
        total, number = 0.0, 0
        for one in self._values:
            if one == one:  # not NaN
                total += one
                number += 1
        self.score = total / number if number else math.nan
        self._streak = self._streak + 1 if self.score > self.detector.threshold else 0
        self.alarm = self._streak >= self.detector.persistence
        return self.alarm


Flags = NDArray[np.bool_]

REFRACTORY = 20
"""Updates of silence that end an episode."""


def beginnings(alarms: Flags) -> Flags:
    """First update of every episode [N, S]: an alarm within `REFRACTORY` updates of the one before belongs to it."""
    position = np.arange(alarms.shape[1])
    last = np.maximum.accumulate(np.where(alarms, position, -REFRACTORY - 1), axis=1)
    before = np.concatenate([np.full((len(alarms), 1), -REFRACTORY - 1), last[:, :-1]], axis=1)
    return np.asarray(alarms & (position - before > REFRACTORY))
