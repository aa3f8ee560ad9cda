"""The verdict on a run of another trainer: the collapse rule on its evaluations, or else on its training reward."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import CollapseRule, CollapseVerdict, judge
from vcpo_bench.analysis.diagnosis.decline import LOST, WINDOW, find_decline
from vcpo_bench.analysis.diagnosis.diagnosis import FELL, Outcome, Verdict
from vcpo_bench.analysis.diagnosis.hard_evidence import HardEvidence, hard_evidence
from vcpo_bench.analysis.diagnosis.small_batch import (
    NOISES,
    SMALL,
    ends_where_it_began,
    fell_beyond_noise,
    samples_per_value,
    scatter,
)
from vcpo_bench.analysis.diagnosis.small_reward import died, learned
from vcpo_bench.analysis.diagnosis.unit_reward import to_unit
from vcpo_bench.analysis.logs.read import OWN
from vcpo_bench.analysis.logs.run import PART, LoggedRun, Series
from vcpo_bench.analysis.wording import counted

Array = NDArray[np.float64]

UPDATES_PER_POINT = 10
"""Training reward is averaged over this many updates before the rule sees it: one batch is too noisy."""
LEAST_POINTS = 12
"""Points that a short log is cut into, each then of fewer updates: a fall at its end must last for three of them."""
LONG = 5
"""Points for which a run must have been declining to be called so where the last of them are below half of its best."""
FINAL_NAN = 3
"""A run whose last so many rewards are not finite ended as nan."""

_RIGHT = re.compile(r"accura|correct|exact|solve|answer|success|pass", re.IGNORECASE)
"""Parts of a reward that say whether an answer is right; where there is one, the others are form."""

CHECKED = (
    "The rule's error rates on runs like this one are not known: it was set for reward between 0 and 1, with three "
    "points in a row below half of the best. A verdict is a description of this curve, not a probability."
)
_VERDICTS: dict[str, Verdict] = {
    "collapse": "collapsed",
    "collapse with rebound": "collapsed",
    "nan": "collapsed",
    "transient dip": "dip",
    "stall": "stall",
    "healthy": "healthy",
}


def read_outcome(run: LoggedRun) -> Outcome:
    """Judge a run by its reward, and by what decides at once.

    Evaluations are used where there are enough of them (one more than the rule's patience); otherwise means of 10
    updates of the training reward. Where a part of the reward fell that the sum hides, the part decides.
    """
    outcome = _of_the_whole(run)
    hard = hard_evidence(run)
    if hard is not None and outcome.verdict != "collapsed":
        return _hard(outcome, hard)
    if outcome.verdict not in FELL and (part := _worst_part(run)) is not None:
        return part
    return outcome


def _of_the_whole(run: LoggedRun) -> Outcome:
    reasons = []
    for column in ("eval_reward", "reward"):
        series = run.series.get(column)
        if series is None:
            reasons.append(f"no {'evaluation' if column == 'eval_reward' else 'training'} reward was logged")
            continue
        outcome = _of_series(run, series, averaged=column == "reward")
        if isinstance(outcome, Outcome):
            between = _between_evaluations(run) if column == "eval_reward" and outcome.verdict not in FELL else None
            return between or outcome
        reasons.append(outcome)
    return Outcome("cannot tell", float("nan"), float("nan"), "", "; ".join(reasons) + ".", "")


def _between_evaluations(run: LoggedRun) -> Outcome | None:
    """The fall of the training reward that sparser evaluations agree with and cannot show; None where there is none.

    They agree where they lost half of what a decline must lose. Training reward alone also falls when prompts become
    harder.
    """
    series, scores = run.series.get("reward"), to_unit(run.series["eval_reward"].finite[1])[0]
    if series is None or scores is None or run.framework == OWN or scores.size >= _points(series, True)[1].size:
        return None
    outcome = _of_series(run, series, averaged=True)
    if not isinstance(outcome, Outcome) or outcome.verdict not in FELL:
        return None
    means = np.convolve(scores, np.full(WINDOW, 1 / WINDOW), mode="valid")
    if means.max() <= 0 or means[-1] > (1 - LOST / 2) * means.max():
        return None
    few = f"The evaluations, {counted(scores.size, 'point')}, fell with it and are too few to judge."
    return replace(outcome, reason=f"{outcome.reason} {few}")


def _of_series(run: LoggedRun, series: Series, averaged: bool) -> Outcome | str:
    """What one curve says, or why it says nothing."""
    steps, values, width = _points(series, averaged)
    least = CollapseRule().patience + 1
    if values.size < least:
        means = f" of {width:g} updates" if averaged and width else ""
        points = f"{counted(values.size, 'point')}{means}"
        return f"{series.column.label}: {points}, fewer than the {least} the rule needs"
    scaled, why = to_unit(values)
    if scaled is None:
        return f"{series.column.label}: {why}"
    status = "nan" if run.status == "nan" or _ends_nan(series) else "completed"
    event = _event(steps, scaled, status)
    if run.framework != OWN and not why:  # a reward that was shifted has no nothing
        event = _of_small(event, steps, scaled, _samples_behind(series, scaled))
    found = _outcome(event, series, width, why, steps, scaled)
    return found if status == "nan" else _if_beyond_noise(found, series, steps, scaled)


def _event(steps: Array, points: Array, status: str) -> CollapseVerdict:
    event = judge(steps, points, status)
    if event.kind == "transient dip" or event.unresolved:  # one low point may be noise
        rule = CollapseRule(min_drop=max(CollapseRule().min_drop, NOISES * scatter(points)))
        event = judge(steps, points, status, rule)
    return event


def _of_small(event: CollapseVerdict, steps: Array, points: Array, samples: float | None) -> CollapseVerdict:
    """The verdict where the least drop or the least gain of the rule hid what the points show."""
    if event.kind not in ("healthy", "stall", "transient dip"):
        return event
    if (fallen := died(steps, points, samples)) is not None:
        return fallen
    return replace(event, kind="healthy") if event.kind == "stall" and learned(points, samples) else event


def _samples_behind(series: Series, points: Array) -> float | None:
    """Samples behind one point of a curve; None where that cannot be read from its values."""
    samples = samples_per_value(series)
    return None if samples is None else samples * series.finite[1].size / points.size


def _if_beyond_noise(outcome: Outcome, series: Series, steps: Array, points: Array) -> Outcome:
    """No verdict of a fall that noise, few samples, or the order of prompts in small batches can explain."""
    if outcome.verdict not in FELL:
        return outcome
    at, samples = int(np.searchsorted(steps, outcome.onset)), samples_per_value(series)
    behind = _samples_behind(series, points)
    updates = max(float(np.median(np.diff(series.finite[0]))), 1.0)  # behind a value
    few = "" if samples is None else f"Each value is the mean of {samples} samples. "
    if not fell_beyond_noise(points, at, behind):
        reason = f"{few}The fall is within the noise of the curve; take more samples, or log an evaluation."
    elif samples is not None and samples <= SMALL * updates and ends_where_it_began(points, behind or samples):
        reason = (
            f"{few}The order of prompts moves it; the curve rose and fell, and its end ({points[-3:].mean():.2f}) is "
            f"not below its start ({points[:3].mean():.2f}). Log an evaluation."
        )
    else:
        return outcome
    return Outcome("cannot tell", float("nan"), outcome.resolution, outcome.column, reason, "")


def _hard(outcome: Outcome, hard: HardEvidence) -> Outcome:
    said = f"{hard.text[:1].upper()}{hard.text[1:]}."
    column = hard.column or outcome.column or "reward"
    return Outcome("collapsed", hard.step, outcome.resolution, column, said, "")


def _worst_part(run: LoggedRun) -> Outcome | None:
    """The outcome of the part of the reward that fell first; None where none did, or where parts say no more."""
    right = {name: part for name, part in run.parts.items() if _RIGHT.search(name)} or run.parts
    judged = [_of_series(run, part, averaged=True) for part in right.values()]
    fallen = [one for one in judged if isinstance(one, Outcome) and one.verdict in FELL]
    return min(fallen, key=lambda one: one.onset, default=None)


def blind(outcome: Outcome, since: float) -> Outcome:
    """The same outcome where engine and trainer are different policies: the reward is not that of the trained one."""
    reason = (
        f"From step {since:g} on, what was sampled has no support under the trained policy: the logged reward is that "
        "of the engine's policy, not of the one being trained, so it cannot show whether the run lives."
    )
    return replace(outcome, verdict="cannot tell", onset=float("nan"), reason=reason)


def _points(series: Series, averaged: bool) -> tuple[Array, Array, float]:
    """The curve the rule sees: steps, values and the updates behind each point."""
    steps, values = series.finite
    if not averaged or steps.size < 2:
        return steps, values, float(np.median(np.diff(steps))) if steps.size > 1 else 0.0
    spacing = float(np.median(np.diff(steps)))
    rows = max(1, math.ceil(min(UPDATES_PER_POINT / spacing, UPDATES_PER_POINT + steps.size))) if spacing > 0 else 1
    if LEAST_POINTS > steps.size // rows > CollapseRule().patience:
        rows = max(1, steps.size // LEAST_POINTS)
    whole = steps.size // rows * rows
    begins = steps[:whole:rows]
    return begins, values[:whole].reshape(-1, rows).mean(axis=1), rows * spacing


def _ends_nan(series: Series) -> bool:
    tail = series.values[-FINAL_NAN:]
    return tail.size == FINAL_NAN and not np.isfinite(tail).any()


def _first_of_last_nans(series: Series, otherwise: float) -> float:
    """The step after the last finite value; another one where the series ends with a finite value."""
    finite = np.flatnonzero(np.isfinite(series.values))
    after = int(finite[-1]) + 1 if finite.size else 0
    return float(series.steps[after]) if after < series.steps.size else otherwise


def _outcome(
    event: CollapseVerdict, series: Series, width: float, scaling: str, steps: Array, values: Array
) -> Outcome:
    label = f"{series.column.label} ({series.logged_as[0]})" if series.column.name == PART else series.column.label
    verdict = _VERDICTS.get(event.kind, "cannot tell")
    decline = find_decline(steps, values) if verdict in ("healthy", "stall", "dip") else None
    slow = decline is not None and decline.onset <= steps[-LONG]
    if event.unresolved and verdict != "collapsed" and not slow:
        verdict = "cannot tell"
        said = f"{label} is below half of its best at the end of the log, too briefly to call"
    elif event.kind == "nan":
        said = f"{label} is not finite from step {_first_of_last_nans(series, event.onset):g} to the end"
    elif verdict == "collapsed":
        back = " and came back" if event.kind == "collapse with rebound" and event.final >= CollapseRule().depth else ""
        said = f"{label} fell to {event.lowest:.0%} of its best{back}; the last points are at {event.final:.0%} of it"
    elif decline is not None:
        verdict = "declining"
        on = ", and is still falling" if decline.falling else ""
        said = (
            f"{label} lost {decline.lost:.0%} of its best{on}: {decline.start:.2f} at the start, {decline.best:.2f} at "
            f"best, {decline.end:.2f} at the end"
        )
    elif verdict == "dip":
        said = f"{label} was below half of its best for fewer than three points, and recovered"
    elif verdict == "stall":
        said = f"{label} did not rise: {values[:3].mean():.2f} at the start, {values[-3:].mean():.2f} at the end"
    elif verdict == "healthy":
        said = f"{label} never fell below half of its best"
    else:
        said = f"{label} never reached 0.05, so there was nothing to lose"
    onset = float("nan")
    if decline is not None and verdict == "declining":
        onset = decline.onset
    if verdict == "collapsed":
        onset = _first_of_last_nans(series, event.onset) if event.kind == "nan" else event.onset
    points = f"{steps.size} points, {width:g} steps apart"
    reason = " ".join(filter(None, [f"{said[:1].upper()}{said[1:]} ({points}).", scaling]))
    return Outcome(verdict, onset, width, series.column.name, reason, CHECKED if verdict == "collapsed" else "")
