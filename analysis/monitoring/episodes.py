"""Alarms close to each other are one episode, which counts where it begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]

REFRACTORY = 20
"""Updates of silence that end an episode."""


def beginnings(alarms: Flags) -> Flags:
    """First update of every episode [N, S]: an alarm within `REFRACTORY` updates of the one before belongs to it."""
    position = np.arange(alarms.shape[1])
    last = np.maximum.accumulate(np.where(alarms, position, -REFRACTORY - 1), axis=1)
    before = np.concatenate([np.full((len(alarms), 1), -REFRACTORY - 1), last[:, :-1]], axis=1)
    return np.asarray(alarms & (position - before > REFRACTORY))
