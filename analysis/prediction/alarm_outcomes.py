"""What alarms would have done: which losses they announced in time, and how often they cried wolf.

Alarms closer together than REFRACTORY updates are one episode, and an episode counts where it begins. A loss is caught
if an episode begins between FURTHEST and NEAREST updates before it is found; one that begins later is too late to act
on, one that begins earlier is a false alarm, and so is every episode of a run that is never lost. No point adjustment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel

NEAREST, FURTHEST = 10, 100
"""A loss is caught by an episode that begins this many updates before it is found: at least, and at most."""
REFRACTORY = 20
"""Updates of silence that end an episode."""


@dataclass(frozen=True)
class Outcomes:
    """What one detector did in each run, all of shape [N].

    Attributes:
        known: The signal was recorded in this run.
        caught: The loss was announced in time.
        lead: Updates from the first episode that caught it to its finding; NaN otherwise.
        late: Not caught, and an episode began too late to act on, or within FURTHEST updates after.
        early: Not caught, not late, and an episode began too early to be credited.
        hits: Episodes that announce the loss in time.
        false: Episodes that announce nothing.
        exposure: Updates at which an alarm would have been false.
        first: Updates applied when the first episode began before any loss; infinite: none.
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
    """Where each update of each run stands toward its loss; computed once per study.

    Attributes:
        lead: Updates left between the moment the record of an update is known and the finding of the loss [N, S];
            infinite in runs never lost.
        at_risk: The run is up and watched [N, S].
        timely: An episode that begins here catches the loss [N, S].
        peaceful: An episode that begins here is a false alarm [N, S].
    """

    lead: Array
    at_risk: Flags
    timely: Flags
    peaceful: Flags


def clock(panel: Panel) -> Clock:
    """Lay out the study's time."""
    known_at = np.arange(1, panel.length + 1, dtype=np.float64)
    lead = panel.onset[:, None] - known_at
    at_risk = (lead > 0) & (known_at <= panel.end[:, None])
    timely = at_risk & (lead >= NEAREST) & (lead <= FURTHEST)
    return Clock(lead, at_risk, timely, at_risk & (lead > FURTHEST))


def held(scores: Array, persistence: int) -> Array:
    """Smallest of the last `persistence` scores [N, S]: a detector speaks exactly where this exceeds its threshold.

    Minus infinity where a score is missing or there are not yet enough of them.
    """
    filled = np.where(np.isnan(scores), -np.inf, scores)
    result = filled.copy()
    for back in range(1, persistence):
        result[:, back:] = np.minimum(result[:, back:], filled[:, :-back])
    result[:, : persistence - 1] = -np.inf
    return result


def beginnings(alarms: Flags) -> Flags:
    """First update of every episode [N, S]: an alarm within `REFRACTORY` updates of the one before belongs to it."""
    position = np.arange(alarms.shape[1])
    last = np.maximum.accumulate(np.where(alarms, position, -REFRACTORY - 1), axis=1)
    before = np.concatenate([np.full((len(alarms), 1), -REFRACTORY - 1), last[:, :-1]], axis=1)
    return np.asarray(alarms & (position - before > REFRACTORY))


def outcomes(level: Array, threshold: NDArray[np.float64] | float, time: Clock) -> Outcomes:
    """Let a detector speak where its `held` level [N, S] exceeds the threshold (one, or one per run [N])."""
    limit = np.broadcast_to(np.asarray(threshold, dtype=np.float64), (len(level),))[:, None]
    begin = beginnings(level > limit)
    hits = (begin & time.timely).sum(axis=1)
    caught = hits > 0
    first_hit = np.argmax(begin & time.timely, axis=1)
    lead = np.where(caught, time.lead[np.arange(len(level)), first_hit], np.nan)
    tardy = (begin & (time.lead < NEAREST) & (time.lead > -FURTHEST)).any(axis=1)
    false = (begin & time.peaceful).sum(axis=1)
    lost = np.isfinite(time.lead[:, 0])
    heard = begin & time.at_risk
    first = np.where(heard.any(axis=1), np.argmax(heard, axis=1) + 1.0, np.inf)
    return Outcomes(
        known=np.asarray(np.isfinite(level).any(axis=1)),
        caught=caught,
        lead=lead,
        late=lost & ~caught & tardy,
        early=lost & ~caught & ~tardy & (false > 0),
        hits=hits.astype(np.float64),
        false=false.astype(np.float64),
        exposure=time.peaceful.sum(axis=1).astype(np.float64),
        first=first,
    )


def placebo(result: Outcomes, time: Clock, lost: Flags, draws: int = 2000, seed: int = 0) -> tuple[float, Array]:
    """Random alarms at the same rate of episodes per update at risk.

    Args:
        result: Of the detector that sets the rate.
        time: Of the study.
        lost: Which lost runs count [N].
        draws: How many times the random alarms are drawn.
        seed: Of the draws.

    Returns:
        Expected share of these losses that random alarms announce in time, and the number they announce in each draw.
    """
    risk = time.at_risk.sum(axis=1)[result.known]
    began = (result.hits + result.false)[result.known].sum()
    rate = began / max(float(risk.sum()), 1.0)
    chance = 1 - (1 - rate) ** time.timely.sum(axis=1)[lost]
    random = np.random.default_rng(seed).random((draws, chance.size)) < chance
    return (float(chance.mean()) if chance.size else float("nan")), random.sum(axis=1).astype(np.float64)
