"""Thresholds from training runs only: every signal is tuned in the same way, on the same runs, with the same choices.

For a window and a persistence, the threshold is the smallest that alarms in at most a given share of the healthy
training runs. Among windows and persistences the setting that catches most failures of the training runs is used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcpo_bench.analysis.prediction.alarm_outcomes import Clock, Outcomes, held, outcomes
from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel

WINDOWS = (1, 5, 20)
PERSISTENCES = (1, 5)
SEED_FOLDS = 3
"""Seeds are dealt round into this many folds (two if there are two seeds)."""
OPERATING = 0.1
"""At most 1 in 10 healthy training runs is ever alarmed."""


class TunedDetector(NamedTuple):
    """A detector's setting, and how many failures of the training runs it catches."""

    window: int
    persistence: int
    threshold: float
    caught: int


Levels = dict[tuple[int, int], Array]
"""Per (window, persistence) the level [N, S] that is compared with the threshold."""


def folds(panel: Panel) -> list[Flags]:
    """Which runs [N] are held out together: those of a third of the seeds; empty with a single seed."""
    seeds = panel.runs["seed"].to_numpy()
    distinct = sorted(set(seeds.tolist()))
    number = min(SEED_FOLDS, len(distinct))
    return [np.isin(seeds, distinct[i::number]) for i in range(number)] if number > 1 else []


def levels(panel: Panel, name: str) -> Levels:
    """What a signal's detectors compare with their threshold, for every window and persistence."""
    scores = {window: panel.scores(name, window) for window in WINDOWS}
    return {(window, p): held(scores[window], p) for window in WINDOWS for p in PERSISTENCES}


def peaks(choices: Levels, time: Clock) -> dict[tuple[int, int], Array]:
    """Greatest level of each run [N] while it was at risk: a detector alarms there if this exceeds its threshold."""
    return {
        setting: np.where(time.at_risk, level, -np.inf).max(axis=1, initial=-np.inf)
        for setting, level in choices.items()
    }


def tune(
    choices: Levels, highest: dict[tuple[int, int], Array], time: Clock, panel: Panel, train: Flags
) -> TunedDetector | None:
    """The best setting at the operating point; None without healthy and failed training runs."""
    known = np.isfinite(next(iter(choices.values()))).any(axis=1)
    healthy, failed = train & known & panel.healthy, train & known & panel.failed
    if not healthy.any() or not failed.any():
        return None
    best: TunedDetector | None = None
    part = Clock(time.lead[failed], time.at_risk[failed], time.timely[failed], time.peaceful[failed])
    for (window, persistence), level in choices.items():
        threshold = share_threshold(highest[window, persistence][healthy], OPERATING)
        caught = int(outcomes(level[failed], threshold, part).caught.sum())
        if best is None or caught > best.caught:
            best = TunedDetector(window, persistence, threshold, caught)
    return best


def share_threshold(highest: Array, target: float) -> float:
    """Smallest threshold that at most a share `target` of these peaks exceeds."""
    ordered = np.sort(highest)[::-1]
    allowed = int(np.floor(target * ordered.size + 1e-9))
    return float(ordered[allowed]) if allowed < ordered.size else float("-inf")


def cross_fitted(panel: Panel, time: Clock, name: str, parts: list[Flags]) -> Outcomes:
    """What the detectors tuned on the other folds did in every run.

    Runs of a fold that could not be tuned count as not recorded.
    """
    choices = levels(panel, name)
    highest = peaks(choices, time)
    level = np.full_like(next(iter(choices.values())), -np.inf)
    threshold = np.full(len(panel.runs), np.inf)
    for test in parts:
        tuned = tune(choices, highest, time, panel, ~test)
        if tuned is not None:
            level[test] = choices[tuned.window, tuned.persistence][test]
            threshold[test] = tuned.threshold
    return outcomes(level, threshold, time)
