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

from vcpo_bench.analysis.monitoring.episodes import beginnings
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
        late: Not caught, and an episode began too late to act on, or within FURTHEST updates after.
        early: Not caught, not late, and an episode began too early to be credited.
        hits: Episodes that announce the failure in time.
        false: Episodes that announce nothing.
        exposure: Updates at which an alarm would have been false.
        first: Updates applied when the first episode began, before any failure; infinite: none.
    """

    known: Flags
    caught: Flags
    lead: Array
    late: Flags
    early: Flags
    hits: Array
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
    hits = (begin & time.timely).sum(axis=1)
    caught = hits > 0
    first_hit = np.argmax(begin & time.timely, axis=1)
    lead = np.where(caught, time.lead[np.arange(len(level)), first_hit], np.nan)
    tardy = (begin & (time.lead < NEAREST) & (time.lead > -FURTHEST)).any(axis=1)
    false = (begin & time.peaceful).sum(axis=1)
    failed = np.isfinite(time.lead[:, 0])
    heard = begin & time.at_risk
    first = np.where(heard.any(axis=1), np.argmax(heard, axis=1) + 1.0, np.inf)
    return Outcomes(
        known=np.asarray(np.isfinite(level).any(axis=1)),
        caught=caught,
        lead=lead,
        late=failed & ~caught & tardy,
        early=failed & ~caught & ~tardy & (false > 0),
        hits=hits.astype(np.float64),
        false=false.astype(np.float64),
        exposure=time.peaceful.sum(axis=1).astype(np.float64),
        first=first,
    )


def placebo(
    result: Outcomes, time: Clock, failed: Flags, unit: NDArray[np.int64], draws: int = 2000, seed: int = 0
) -> tuple[float, Array]:
    """Random alarms at the same rate of episodes per update at risk. Runs of a unit have the same luck.

    A detector tends to alarm in all seeds of a configuration or in none. Luck drawn for each run would vary too little.

    Args:
        result: Of the detector that sets the rate.
        time: Of the study.
        failed: Which failed runs count [N].
        unit: Which unit each run belongs to [N].
        draws: How many times the random alarms are drawn.
        seed: Of the draws.

    Returns:
        Expected share of these failures that random alarms announce in time, and the number they announce in each draw.
    """
    risk = time.at_risk.sum(axis=1)[result.known]
    began = (result.hits + result.false)[result.known].sum()
    rate = began / max(float(risk.sum()), 1.0)
    chance = 1 - (1 - rate) ** time.timely.sum(axis=1)[failed]
    _, of = np.unique(unit[failed], return_inverse=True)
    luck = np.random.default_rng(seed).random((draws, int(of.max(initial=-1)) + 1))[:, of]
    announced = (luck < chance).sum(axis=1).astype(np.float64)
    return (float(chance.mean()) if chance.size else float("nan")), announced
