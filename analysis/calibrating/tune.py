"""Thresholds from training runs at which any of the detectors is wrong in at most one healthy run in ten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcpo_bench.analysis.calibrating.runs import CalibrationRuns
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.analysis.prediction.alarm_outcomes import Clock, clock, outcomes
from vcpo_bench.analysis.prediction.panel import Array, Flags
from vcpo_bench.analysis.prediction.thresholds import Levels, levels, peaks, share_threshold
from vcpo_bench.progress import track

TARGET = 0.1
"""Share of healthy runs in which any detector may speak."""
LADDER = (0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.0)
"""Shares tried for each part, the largest first."""
MOST_PARTS = 6
LEAST_WORTH = 0.5
"""A signal is kept that announces at least this share of what the best one announces."""
LEFT_OUT = ("reward_low",)
"""A level of reward belongs to one task."""


@dataclass(frozen=True)
class Material:
    """What tuning needs of a study, computed once.

    Attributes:
        study: The runs.
        time: Where each update stands.
        levels: Per signal and setting, what is compared with the threshold [N, S].
        peaks: Per signal and setting, its greatest value in each run while it was at risk [N].
    """

    study: CalibrationRuns
    time: Clock
    levels: dict[str, Levels]
    peaks: dict[str, dict[tuple[int, int], Array]]


def material(study: CalibrationRuns) -> Material:
    """Levels and peaks of every candidate."""
    time = clock(study.panel)
    names = [name for name in study.panel.recorded() if name in SIGNALS.kinds and name not in LEFT_OUT]
    wanted = [name for name in names if SIGNALS.get(name).role != "circumstance"]
    candidates = {name: levels(study.panel, name) for name in track(wanted, "smoothing signals", len(wanted))}
    return Material(study, time, candidates, {name: peaks(one, time) for name, one in candidates.items()})


def tune(given: Material, train: Flags) -> list[Detector]:
    """The detectors that training runs choose, the best first; empty without healthy training runs."""
    return at_most(given, train, [train & given.study.healthy])


def at_most(given: Material, train: Flags, among: Sequence[Flags]) -> list[Detector]:
    """`tune`, where any detector speaks in at most `TARGET` of each of several sets of healthy training runs.

    Args:
        given: The runs.
        train: Those that tune [N].
        among: The sets [N], at least one. The share of each detector alone is of all healthy training runs.

    Returns:
        The best first; empty where a set is empty, or where no share keeps the promise in all of them.
    """
    if not among or not all(one.any() for one in among):
        return []
    kept = _worth_keeping(given, train)
    for share in LADDER:
        chosen = [detector for name in kept if (detector := _best(given, name, train, share)[0]) is not None]
        alarmed = np.zeros(len(train), dtype=bool)
        for one in chosen:
            alarmed |= given.peaks[one.signal][one.window, one.persistence] > one.threshold
        if all(alarmed[one].sum() <= np.floor(TARGET * one.sum() + 1e-9) for one in among):
            return chosen
    return []


def _worth_keeping(given: Material, train: Flags) -> list[str]:
    """Signals that announce most failures alone, the best first."""
    alone = {name: _best(given, name, train, TARGET) for name in given.levels}
    found = [(caught, name) for name, (detector, caught) in alone.items() if detector is not None]
    most = max((caught for caught, _ in found), default=0)
    kept = [name for caught, name in sorted(found, key=lambda one: (-one[0], one[1])) if caught >= LEAST_WORTH * most]
    return kept[:MOST_PARTS]


def _best(given: Material, name: str, train: Flags, share: float) -> tuple[Detector | None, int]:
    """The setting of one signal that announces most failures, and how many; None where it is not recorded."""
    choices = given.levels[name]
    known = np.isfinite(next(iter(choices.values()))).any(axis=1)
    healthy, failed = train & known & given.study.healthy, train & known & given.study.panel.failed
    if not healthy.any():
        return None, 0
    time = given.time
    part = Clock(time.lead[failed], time.at_risk[failed], time.timely[failed], time.peaceful[failed])
    best: Detector | None = None
    most = -1
    for (window, persistence), level in choices.items():
        threshold = share_threshold(given.peaks[name][window, persistence][healthy], share)
        caught = int(outcomes(level[failed], threshold, part).caught.sum()) if failed.any() else 0
        if caught > most and np.isfinite(threshold):
            best, most = Detector(name, window, threshold, persistence), caught
    return best, max(most, 0)
