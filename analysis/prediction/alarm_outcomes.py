"""What alarms would have done: which failures they announced in time, and how often they were false.

Alarms at most REFRACTORY updates apart are one episode, and an episode counts where it begins. A failure is caught if
an episode begins between FURTHEST and NEAREST updates before its onset. An episode that begins later is too late to act
on; one that begins earlier is a false alarm, and so is every episode of a run that never fails. There is no point
adjustment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.monitoring.detectors import beginnings
from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel

NEAREST, FURTHEST = 10, 100
"""A failure is caught by an episode that begins this many updates before its onset: at least, and at most."""


@dataclass(frozen=True)
class Outcomes:
    """What one detector did in each run, all of shape [N].

    Attributes:
        known: The signal was recorded in this run.
        caught: The failure was announced in time.
        lead: Updates from the first episode that caught it to the onset; NaN otherwise.
        false: Episodes that announce nothing.
        exposure: Updates at which an alarm would have been false.
        first: Updates applied when the first episode began, before any failure; infinite: none.
    """

    known: Flags
    caught: Flags
    lead: Array
    false: Array
    exposure: Array
    first: Array


@dataclass(frozen=True)
class Clock:
    """Where each update of each run stands relative to its failure; computed once per study.

    Attributes:
        lead: Updates from the moment the record of an update is known to the onset of failure [N, S]; infinite in
            runs that never fail.
        at_risk: The run has not failed and is watched [N, S].
        timely: An episode that begins here catches the failure [N, S].
        peaceful: An episode that begins here is a false alarm [N, S].
    """

    lead: Array
    at_risk: Flags
    timely: Flags
    peaceful: Flags


def clock(panel: Panel) -> Clock:
    """Where every update of a study stands."""
    known_at = np.arange(1, panel.length + 1, dtype=np.float64)
    lead = panel.onset[:, None] - known_at
    at_risk = (lead > 0) & (known_at <= panel.end[:, None])
    timely = at_risk & (lead >= NEAREST) & (lead <= FURTHEST)
    return Clock(lead, at_risk, timely, at_risk & (lead > FURTHEST))


def held(scores: Array, persistence: int) -> Array:
    """Smallest of the last `persistence` scores [N, S]: a detector alarms exactly where this exceeds its threshold.

    Minus infinity where a score is missing or there are not yet enough of them.
    """
    filled = np.where(np.isnan(scores), -np.inf, scores)
    result = filled.copy()
    for back in range(1, persistence):
        result[:, back:] = np.minimum(result[:, back:], filled[:, :-back])
    result[:, : persistence - 1] = -np.inf
    return result


def outcomes(level: Array, threshold: NDArray[np.float64] | float, time: Clock) -> Outcomes:
    """What a detector does that alarms where its `held` level [N, S] exceeds the threshold: one, or one per run [N]."""
    limit = np.broadcast_to(np.asarray(threshold, dtype=np.float64), (len(level),))[:, None]
    begin = beginnings(level > limit)
    caught = np.asarray((begin & time.timely).any(axis=1))
    first_hit = np.argmax(begin & time.timely, axis=1)
    lead = np.where(caught, time.lead[np.arange(len(level)), first_hit], np.nan)
    false = (begin & time.peaceful).sum(axis=1)
    heard = begin & time.at_risk
    first = np.where(heard.any(axis=1), np.argmax(heard, axis=1) + 1.0, np.inf)
    return Outcomes(
        known=np.asarray(np.isfinite(level).any(axis=1)),
        caught=caught,
        lead=lead,
        false=false.astype(np.float64),
        exposure=time.peaceful.sum(axis=1).astype(np.float64),
        first=first,
    )
