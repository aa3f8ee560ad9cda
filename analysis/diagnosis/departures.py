"""When did each signal leave its own history, or its start? Order, not verdict: healthy runs have departures too."""

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
EARLIEST = 2
"""Values before the first point that can be judged; with fewer than `SHORTEST_HISTORY` a signal must also change by
`FACTOR`."""
FACTOR = 3.0
"""How many times its start a slowly growing signal must reach, or fall to a part of."""
BEGINS = 1.5
"""Factor by which a signal must differ from what was before for its change to have begun."""
START_SHARE, MOST_OF_A_START = 20, 10
"""The start of a signal is one value in so many of all, at least three and at most ten."""
PERSISTENCE = 3
"""Values in a row that must be out."""
DISTANCE = 6.0
"""How many robust standard deviations are out."""
ZERO_INFLATED = frozenset({"grad_norm", "reward_std"})
"""Exactly 0 where all groups of a batch have equal rewards: the next real value is no rise."""
DRIFTING = frozenset({"kl_reference", "length_mean"})
"""They leave their start in healthy runs too: only what departs from the last values is dated."""
MOST_POINTS = 3000
"""A longer series is averaged to this many points first."""

NOT_SIGNALS = frozenset({"reward", "eval_reward", "lr", "seconds", "queued", "loss", "length_max"})
"""The outcome, and what says nothing about health by itself."""
_MAD_TO_STD = 1.4826
_MOST_BENDS = 200


def find_departures(run: LoggedRun) -> tuple[Departure, ...]:
    """The first departure of every signal, in the order of steps."""
    found = [departure(one) for name, one in run.series.items() if name not in NOT_SIGNALS]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: (one.step, one.column)))


def departure(series: Series) -> Departure | None:
    """The first place where three values in a row are far from the 40 before them, or have grown far from the start."""
    steps, values = thinned(series)
    if series.column.name in ZERO_INFLATED:
        steps, values = steps[values != 0], values[values != 0]
    if values.size < EARLIEST + PERSISTENCE:
        return None
    known = []
    if (at := _left_history(values, series)) is not None:
        known.append((_began(values, at, values[max(0, at - HISTORY) : at]), at))
    if (at := _left_start(values, series)) is not None:
        drifts = series.column.name in DRIFTING
        before = values[max(0, at - HISTORY) : at] if drifts else values[: start_size(values.size)]
        began = _began(values, at, before)
        known.append((began if drifts else max(began, _bend(values[: at + PERSISTENCE], began, at)), at))
    if not known:
        return None
    began, at = min(known)
    usual = float(np.median(values[max(0, began - HISTORY) : began] if began else values[: start_size(values.size)]))
    after = float(np.median(values[at : at + HISTORY // 2]))
    if after == usual:  # a share of few groups is back at its usual value in most rows
        after = float(np.median(values[at : at + PERSISTENCE]))
    return Departure(
        series.column.name,
        float(steps[began]),
        usual,
        after,
        series.logged_as[0],
        series.source.tag,
    )


def start_size(values: int) -> int:
    """How many values stand for the start of a signal of so many."""
    return min(max(values // START_SHARE, PERSISTENCE), MOST_OF_A_START, values)


def _left_history(values: Array, series: Series) -> int | None:
    """Where a signal is six robust standard deviations from the 40 values before it."""
    compared = _compared(values, series)
    middle, spread = _history(compared)
    score = (compared - middle) / np.maximum(spread, series.column.floor)
    early = np.arange(values.size) < SHORTEST_HISTORY
    score[early & ~_changed_by_factor(values, _history(values)[0])] = 0.0
    score[:EARLIEST] = 0.0
    return _first_out(score)


def _left_start(values: Array, series: Series) -> int | None:
    """Where a signal has reached three times its start, or a third of it, and stays there for most of the rest."""
    start = values[: start_size(values.size)]
    middle = float(np.median(start))
    spread = _MAD_TO_STD * float(np.median(np.abs(start - middle)))
    least = max(spread, series.column.floor if not series.column.log else series.column.floor * abs(middle))
    out = _changed_by_factor(values, np.full(values.size, middle)) & (np.abs(values - middle) > DISTANCE * least)
    at = first_long_streak(out, PERSISTENCE)
    return at if at is not None and out[at:].mean() > 1 / 2 else None


def _began(values: Array, at: int, before: Array) -> int:
    """Where the change that shows at a point began: back to the last value within `BEGINS` of what was before it."""
    middle = float(np.median(before)) if before.size else 0.0
    if at == 0 or middle == 0:
        return at
    share = values[:at] / middle
    still = np.flatnonzero(share < BEGINS if values[at] > middle else share > 1 / BEGINS)
    return int(still[-1]) + 1 if still.size else at


def _bend(values: Array, first: int, at: int) -> int:
    """Where in between a curve that drifted turned to what shows at a point: the bend of the best two straight lines.

    A signal that slowly leaves its start, as entropy does in healthy runs, has not begun to fail there.
    """
    if at - first < SHORTEST_HISTORY:
        return first
    curve = np.log(values) if values.min() > 0 else values
    x = np.arange(values.size, dtype=np.float64)
    places = np.unique(np.linspace(first, at, _MOST_BENDS).astype(int))
    lines = [np.column_stack([np.ones(x.size), x, np.maximum(x - place, 0)]) for place in places]
    left = [float(np.sum((curve - line @ np.linalg.lstsq(line, curve)[0]) ** 2)) for line in lines]
    return int(places[int(np.argmin(left))])


def _changed_by_factor(values: Array, start: Array) -> NDArray[np.bool_]:
    """Whether values are `FACTOR` times another, or a part of it."""
    low, high = np.minimum(np.abs(values), np.abs(start)), np.maximum(np.abs(values), np.abs(start))
    return np.asarray(high >= FACTOR * low) & (high > 0)


def _first_out(score: Array) -> int | None:
    starts = [first_long_streak(side > DISTANCE, PERSISTENCE) for side in (score, -score)]
    return min((start for start in starts if start is not None), default=None)


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
