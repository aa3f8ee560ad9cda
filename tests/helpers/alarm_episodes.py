"""Alarms merged into episodes, one at a time: what the vectorized counts of `analyze prediction` are checked with."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class AlarmEpisode(NamedTuple):
    """Alarms close together, counted as one: the positions of the first and the last of them."""

    first: int
    last: int


def episodes(alarms: ArrayLike, refractory: int) -> list[AlarmEpisode]:
    """Merge alarms [S]: one at most `refractory` updates after the one before belongs to its episode."""
    found: list[AlarmEpisode] = []
    for at in np.flatnonzero(np.asarray(alarms, dtype=bool)).tolist():
        if found and at - found[-1].last <= refractory:
            found[-1] = AlarmEpisode(found[-1].first, at)
        else:
            found.append(AlarmEpisode(at, at))
    return found
