"""Rewards so small that the absolute steps of the collapse rule would hide a fall to nothing, or a rise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import CollapseVerdict
from vcpo_bench.analysis.diagnosis.small_batch import fell_beyond_noise, rose_beyond_noise

Array = NDArray[np.float64]

LONG = 5
"""Points for which a reward must be near nothing, and over which its best is a mean: single points are noise."""
NOTHING = 0.15
"""Share of its best that such a reward may have left on average."""
NEAR = 0.3
"""The same for each of these points."""
GAINED = 0.25
"""Share of the end that a rise must have gained: a reward that creeps up has stalled, however little noise it has."""
_POINTS = 3
"""Points that are averaged at either end."""


def died(steps: Array, values: Array, samples: float | None) -> CollapseVerdict | None:
    """The verdict on a reward that is next to nothing from a point to the end; None where it is not.

    Args:
        steps: Of each point, shape [n].
        values: Reward between 0 and 1, shape [n].
        samples: Behind one point; None: not known.
    """
    if values.size < 2 * LONG:
        return None
    best = float(np.convolve(values, np.full(LONG, 1 / LONG), mode="valid").max())
    above = np.flatnonzero(values >= NEAR * best)
    at = int(above[-1]) + 1 if above.size else 0
    left = values[at:]
    if at < LONG or left.size < LONG or left.mean() > NOTHING * best or not fell_beyond_noise(values, at, samples):
        return None
    lowest, final = float(left.min()) / best, float(left[-_POINTS:].mean()) / best
    return CollapseVerdict("collapse", float(steps[at]), lowest, final, falls=1)


def learned(values: Array, samples: float | None) -> bool:
    """Whether the last points are above the first ones by a share of themselves, and beyond their noise."""
    start, end = float(values[:_POINTS].mean()), float(values[-_POINTS:].mean())
    return end - start >= GAINED * end and rose_beyond_noise(values, samples)
