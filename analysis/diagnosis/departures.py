"""When did each signal leave its own history? Order, not verdict: healthy runs have departures too."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.diagnosis import Departure
from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.analysis.series import first_long_streak

Array = NDArray[np.float64]

HISTORY = 40
"""Values before a point that it is compared with."""
SHORTEST_HISTORY = 10
PERSISTENCE = 3
"""Values in a row that must be out."""
DISTANCE = 6.0
"""How many robust standard deviations are out."""
MOST_POINTS = 3000
"""A longer series is averaged to this many points first."""

NOT_SIGNALS = frozenset({"reward", "eval_reward", "lr", "seconds", "queued", "loss"})
"""The outcome, and what says nothing about health by itself."""
_MAD_TO_STD = 1.4826


def find_departures(run: LoggedRun) -> tuple[Departure, ...]:
    """The first departure of every signal, in the order of steps."""
    found = [departure(one) for name, one in run.series.items() if name not in NOT_SIGNALS]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: (one.step, one.column)))


def departure(series: Series) -> Departure | None:
    """The first place where three values in a row are six robust standard deviations from the 40 before them."""
    steps, values = thinned(series)
    if values.size < SHORTEST_HISTORY + PERSISTENCE:
        return None
    compared = _compared(values, series)
    middle, spread = _history(compared)
    score = (compared - middle) / np.maximum(spread, series.column.floor)
    score[:SHORTEST_HISTORY] = 0.0
    starts = [first_long_streak(side > DISTANCE, PERSISTENCE) for side in (score, -score)]
    known = [start for start in starts if start is not None]
    if not known:
        return None
    at = min(known)
    before = values[max(0, at - HISTORY) : at]
    return Departure(
        series.column.name,
        float(steps[at]),
        float(np.median(before)),
        float(np.median(values[at : at + HISTORY // 2])),
        series.logged_as[0],
        series.source.tag,
    )


def thinned(series: Series) -> tuple[Array, Array]:
    """Finite steps and values, averaged in blocks where there are more than `MOST_POINTS`."""
    steps, values = series.finite
    block = -(-steps.size // MOST_POINTS)
    if block <= 1:
        return steps, values
    whole = steps.size // block * block
    return steps[:whole:block], values[:whole].reshape(-1, block).mean(axis=1)


def _compared(values: Array, series: Series) -> Array:
    """The values on the axis they are compared on."""
    if not series.column.log:
        return values
    positive = values[values > 0]
    least = float(positive.min()) if positive.size else 1.0
    return np.asarray(np.log(np.maximum(values, least)))


def _history(values: Array) -> tuple[Array, Array]:
    """Median and robust standard deviation of the values before each point."""
    middle, spread = np.zeros(values.size), np.zeros(values.size)
    for end in range(1, min(HISTORY, values.size)):
        before = values[:end]
        middle[end] = np.median(before)
        spread[end] = np.median(np.abs(before - middle[end]))
    if values.size > HISTORY:
        windows = sliding_window_view(values, HISTORY)[:-1]
        middle[HISTORY:] = np.median(windows, axis=1)
        spread[HISTORY:] = np.median(np.abs(windows - middle[HISTORY:, None]), axis=1)
    return middle, spread * _MAD_TO_STD
