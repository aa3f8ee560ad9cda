"""Thresholds from training runs only: every signal is tuned in the same way, on the same runs, with the same choices.

For a window and a persistence, the threshold is the smallest that alarms in at most a given share of the healthy
training runs. Among windows, persistences and smaller shares, the setting that catches most failures of the training
runs is used: a sensitive threshold can catch fewer, because it raises its alarm too early.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.alarm_outcomes import Clock, Outcomes, held, outcomes
from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel

WINDOWS = (1, 5, 20)
PERSISTENCES = (1, 5)
SEED_FOLDS = 3
"""Seeds are dealt round into this many folds (two if there are two seeds)."""
SPLITS = ("seed", "staleness", "method", "task")
"""What is held out: seeds, then lags, methods and tasks, one value at a time."""


class Fold(NamedTuple):
    """A split of the runs [N]: thresholds come from `train` and are judged on `test`."""

    name: str
    train: Flags
    test: Flags


class TunedDetector(NamedTuple):
    """A detector's setting, how many training runs chose it, and how many of their failures it catches."""

    window: int
    persistence: int
    threshold: float
    train_caught: int
    train_healthy: int
    train_collapsed: int


Levels = dict[tuple[int, int], Array]
"""Per (window, persistence) the level [N, S] that is compared with the threshold."""


def folds(panel: Panel, column: str) -> list[Fold]:
    """Leave out one value of the column at a time (seeds: a third of them); empty with fewer than two values.

    Twins of held-out runs train nothing either: at another lag they may be the same event.
    """
    values = panel.runs[column].to_numpy()
    distinct = sorted(set(values.tolist()))
    if len(distinct) < 2:
        return []
    number = min(SEED_FOLDS, len(distinct)) if column == "seed" else len(distinct)
    groups = [distinct[i::number] for i in range(number)]
    result = []
    for group in groups:
        test = np.isin(values, group)
        train = ~test if panel.twins is None else ~np.isin(panel.twins, panel.twins[test])
        result.append(Fold(",".join(str(one) for one in group), train, test))
    return result


def fold_numbers(parts: list[Fold], runs: int) -> NDArray[np.int64]:
    """Which fold each run is held out in [N]."""
    number = np.full(runs, -1, dtype=np.int64)
    for i, fold in enumerate(parts):
        number[fold.test] = i
    return number


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
    choices: Levels, highest: dict[tuple[int, int], Array], time: Clock, panel: Panel, train: Flags, target: float
) -> TunedDetector | None:
    """The best setting at a share of healthy training runs alarmed; None without healthy and failed training runs."""
    known = np.isfinite(next(iter(choices.values()))).any(axis=1)
    healthy, failed = train & known & panel.healthy, train & known & panel.failed
    if not healthy.any() or not failed.any():
        return None
    best: TunedDetector | None = None
    part = Clock(time.lead[failed], time.at_risk[failed], time.timely[failed], time.peaceful[failed])
    for (window, persistence), level in choices.items():
        threshold = share_threshold(highest[window, persistence][healthy], target)
        caught = int(outcomes(level[failed], threshold, part).caught.sum())
        if best is None or caught > best.train_caught:
            best = TunedDetector(window, persistence, threshold, caught, int(healthy.sum()), int(failed.sum()))
    return best


def share_threshold(highest: Array, target: float) -> float:
    """Smallest threshold that at most a share `target` of these peaks exceeds."""
    ordered = np.sort(highest)[::-1]
    allowed = int(np.floor(target * ordered.size + 1e-9))
    return float(ordered[allowed]) if allowed < ordered.size else float("-inf")


def cross_fitted(
    panel: Panel, time: Clock, name: str, parts: list[Fold], targets: tuple[float, ...]
) -> Iterator[tuple[float, Outcomes, list[tuple[Fold, TunedDetector]]]]:
    """Per target (ascending), what the detectors tuned on the other folds did in every run.

    Runs of a fold that could not be tuned count as not recorded.
    """
    choices = levels(panel, name)
    highest = peaks(choices, time)
    best: dict[str, TunedDetector] = {}
    for target in targets:
        level = np.full_like(next(iter(choices.values())), -np.inf)
        threshold = np.full(len(panel.runs), np.inf)
        for fold in parts:
            tuned = tune(choices, highest, time, panel, fold.train, target)
            if tuned and (fold.name not in best or tuned.train_caught > best[fold.name].train_caught):
                best[fold.name] = tuned
            if fold.name in best:
                chosen = best[fold.name]
                level[fold.test] = choices[chosen.window, chosen.persistence][fold.test]
                threshold[fold.test] = chosen.threshold
        yield target, outcomes(level, threshold, time), [(fold, best[fold.name]) for fold in parts if fold.name in best]
