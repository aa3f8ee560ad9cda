"""A run that loses, and not yet half of its best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WINDOW = 3
"""Points that are averaged before best and end are compared."""
LOST = 0.25
"""Share of the best that must be lost."""
NOISES = 4.0
"""Standard errors of the difference that it must exceed."""
LEAST_POINTS = 8


class Decline(NamedTuple):
    """A loss that lasts to the end.

    Attributes:
        onset: Step from which the curve stays below the middle between its best and its end.
        start: Mean of the first points.
        best: Highest mean of three points.
        end: Mean of the last points.
        falling: Whether the last third still falls.
    """

    onset: float
    start: float
    best: float
    end: float
    falling: bool

    @property
    def lost(self) -> float:
        """Share of the best that is lost."""
        return 1 - self.end / self.best


def find_decline(steps: Array, values: Array) -> Decline | None:
    """The loss of a curve at its end; None where there is none beyond its noise.

    Args:
        steps: Of each point, ascending, shape [n].
        values: Reward at or above 0, shape [n].
    """
    if values.size < LEAST_POINTS:
        return None
    means = np.convolve(values, np.full(WINDOW, 1 / WINDOW), mode="valid")
    noise = float(np.std(np.diff(values))) / np.sqrt(2 * WINDOW)
    top = int(np.argmax(means))
    best, end = float(means[top]), float(means[-1])
    if best <= 0 or best - end < max(LOST * best, NOISES * np.sqrt(2) * noise):
        return None
    above = np.flatnonzero(means >= (best + end) / 2)
    onset = float(steps[min(int(above[-1]) + WINDOW - 1, steps.size - 1)])
    last = values[-max(values.size // 3, 4) :]
    half = last.size // 2
    falling = float(last[:half].mean() - last[half:].mean()) > 2 * noise * np.sqrt(WINDOW * 2 / half)
    return Decline(onset, float(means[0]), best, end, falling)
