"""`diagnose`: from a log to verdict, onset, order of signals, causes, and what could not be seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from vcpo_bench.analysis.diagnosis.answers import find_answers
from vcpo_bench.analysis.diagnosis.causes.batch import length, part_of_the_reward, zero_variance
from vcpo_bench.analysis.diagnosis.causes.curves import resume, train_eval_gap
from vcpo_bench.analysis.diagnosis.causes.policy import NOT_FINITE, entropy, gradient, reference
from vcpo_bench.analysis.diagnosis.causes.story import Story
from vcpo_bench.analysis.diagnosis.causes.weights import (
    engine_gap,
    lag_and_weights,
    lost_support,
    silent_anchor,
    support_lost_at,
)
from vcpo_bench.analysis.diagnosis.chain import STATES, find_chain
from vcpo_bench.analysis.diagnosis.departures import DISTANCE, NOT_SIGNALS, PERSISTENCE, find_departures, thinned
from vcpo_bench.analysis.diagnosis.diagnosis import LOST_SUPPORT, PART_LOST, Cause, Diagnosis, Outcome, Unseen
from vcpo_bench.analysis.diagnosis.outcome import blind, read_outcome
from vcpo_bench.analysis.diagnosis.references import beside_references
from vcpo_bench.analysis.diagnosis.try_next import try_next
from vcpo_bench.analysis.log_alarms import find_alarms
from vcpo_bench.analysis.logs.names import columns, frameworks
from vcpo_bench.analysis.logs.run import LoggedRun, Series
from vcpo_bench.analysis.monitoring.calibration import load_calibrations, load_verdict_rates
from vcpo_bench.analysis.series import first_long_streak

CAUSES: tuple[Callable[[Story], Cause | None], ...] = (
    lost_support, part_of_the_reward, resume, lag_and_weights, engine_gap, gradient, length, entropy, reference,
    zero_variance, train_eval_gap, silent_anchor,
)  # fmt: skip

DECISIVE = (LOST_SUPPORT, PART_LOST)
"""Causes that explain all other signs, whichever of these came first."""

WANTED = (
    ("eval_reward",), ("entropy",), ("grad_norm",), ("length_mean",), ("truncated_share",),
    ("zero_variance_share", "reward_std"), ("kl_mu_theta_k3", "kl_mu_theta_k1"), ("logp_gap", "prob_gap"),
    ("weight_mean", "chi2_seq"), ("ess_ratio",), ("lag_mean", "lag_max"),
)  # fmt: skip
"""What the causes need; of each line, one column is enough."""


def diagnose(
    run: LoggedRun,
    baseline: LoggedRun | None = None,
    calibration: str | Path | None = None,
    references: bool = False,
) -> Diagnosis:
    """What happened to a run.

    The verdict comes from the reward only. Signals are put in order and weighed as causes; none of them is a verdict.

    Args:
        run: Of `read_run`.
        baseline: A reference run, such as one that went well; its signals are compared at the same steps.
        calibration: File of `vcpo-bench lab calibrate`: its detectors are run over the log, and its error rates stand
            beside the verdict. None: no detector is run, and the rates are those of the package.
        references: Whether to set the run beside the two that ship for its trainer.

    Raises:
        UsageError: The calibration cannot be read.
    """
    outcome, departures = _with_rates(read_outcome(run), calibration), find_departures(run)
    story = Story(run, outcome, departures)
    lost = support_lost_at(story)
    if lost is not None and outcome.verdict in ("healthy", "stall", "dip"):
        outcome = blind(outcome, lost)
        story = Story(run, outcome, departures)
    causes = [found for cause in CAUSES if (found := cause(story)) is not None]
    ranked = sorted(causes, key=lambda one: _rank(one, outcome))
    compared = compare(run, baseline) if baseline is not None else ()
    alarms = find_alarms(run, load_calibrations(calibration)) if calibration is not None else None
    return Diagnosis(
        run,
        outcome,
        departures,
        tuple(ranked),
        _unseen(run),
        compared,
        alarms,
        find_answers(run, outcome),
        find_chain(outcome, ranked),
        try_next(run, ranked),
        beside_references(run, departures) if references else None,
    )


def _rank(cause: Cause, outcome: Outcome) -> tuple[bool, bool, bool, float]:
    """The probable first, by when they began; numbers that are not finite explain what began with them.

    What held all along changed nothing, so it explains a fall less than anything that moved.
    """
    broken = any(sign == NOT_FINITE for _, sign in cause.signs) and math.isfinite(outcome.resolution)
    return (
        cause.standing != "probable",
        cause.name not in DECISIVE,
        cause.name in STATES,
        cause.since - (outcome.resolution if broken else 0.0),
    )


def _with_rates(outcome: Outcome, calibration: str | Path | None) -> Outcome:
    """The outcome with what was measured of such verdicts elsewhere: rates are known for the training reward only."""
    rates = load_verdict_rates() if calibration is None else load_verdict_rates(calibration)
    known = rates is not None and outcome.column == "reward" and outcome.checked
    return replace(outcome, checked=rates.words) if rates is not None and known else outcome


def _unseen(run: LoggedRun) -> tuple[Unseen, ...]:
    known = frameworks().get(run.framework)
    switches = known.switches if known is not None else {}
    missing = []
    for names in WANTED:
        if not any(name in run.series for name in names):
            switch = next((switches[name] for name in names if name in switches), "")
            if there := [name for name in names if name in run.unused]:
                switch = f"there is {there[0]}, which is not mapped; add {there[0]}={there[0]} to --map"
            missing.append(Unseen(names[0], columns()[names[0]].label, switch))
    return tuple(missing)


_MAD_TO_STD = 1.4826


def compare(run: LoggedRun, reference: LoggedRun) -> tuple[str, ...]:
    """One sentence per signal that both runs log, where it leaves the range of the reference; and what is missing.

    The reference is one run: its own noise is the only yardstick, and another seed of it may differ as much.
    """
    found = []
    for name, series in run.series.items():
        if name in NOT_SIGNALS or name not in reference.series:
            continue
        first = _first_difference(series, reference.series[name])
        if first is not None:
            found.append(first)
    sentences = [text for _, text in sorted(found)]
    absent = sorted(name for name in reference.series if name not in run.series and name not in NOT_SIGNALS)
    if absent:
        sentences.append(f"The reference logs {', '.join(absent)}; this run does not.")
    return tuple(sentences) or ("No signal leaves the range of the reference run.",)


def _first_difference(series: Series, reference: Series) -> tuple[float, str] | None:
    steps, values = thinned(series)
    at, usual = thinned(reference)
    inside = (steps >= at[0]) & (steps <= at[-1]) if at.size else np.zeros(steps.size, dtype=bool)
    if inside.sum() < PERSISTENCE:
        return None
    steps, values = steps[inside], values[inside]
    expected = np.interp(steps, at, usual)
    noise = _MAD_TO_STD * float(np.median(np.abs(np.diff(usual)))) if usual.size > 1 else 0.0
    floor = series.column.floor * (np.maximum(np.abs(expected), 1e-12) if series.column.log else 1.0)
    out = np.abs(values - expected) > DISTANCE * np.maximum(noise, floor)
    start = first_long_streak(out, PERSISTENCE)
    if start is None:
        return None
    difference = f"{values[start]:.3g} against {expected[start]:.3g}"
    text = f"{series.column.label} leaves the reference at step {steps[start]:g}: {difference}."
    return float(steps[start]), text
