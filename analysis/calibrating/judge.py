"""Error rates of tuned detectors on configurations that did not choose them, of each part and of all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.calibrating.runs import Study
from vcpo_bench.analysis.calibrating.tune import Material, tune
from vcpo_bench.analysis.monitoring.calibration import Rate
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.prediction.alarm_outcomes import Outcomes, held, outcomes
from vcpo_bench.analysis.prediction.clusters import clustered_ratio, clustered_share
from vcpo_bench.analysis.prediction.panel import Flags
from vcpo_bench.progress import track

FOLDS = 5
ANY = "any of them"
"""The row of all detectors together."""

Row = dict[str, Any]


def configuration_folds(study: Study) -> list[Flags]:
    """Which runs are held out in each fold: whole configurations, dealt at random."""
    distinct = np.unique(study.configuration)
    dealt = dict(zip(np.random.default_rng(0).permutation(distinct), range(distinct.size), strict=True))
    fold = np.array([dealt[one] % FOLDS for one in study.configuration])
    return [fold == number for number in range(FOLDS) if (fold == number).any() and not (fold == number).all()]


def group_folds(study: Study) -> list[Flags]:
    """One task held out at a time; empty with a single task."""
    distinct = sorted(set(study.groups))
    return [study.groups == one for one in distinct] if len(distinct) > 1 else []


def judge(given: Material, folds: Sequence[Flags]) -> pd.DataFrame:
    """What detectors do in runs whose configuration did not tune them.

    Columns: `signal` (or `ANY`), `n_healthy`, `n_collapsed`, `configurations` (of healthy runs), `healthy_alarmed`
    (share of healthy runs with an alarm), `false_per_1000` (alarms per 1,000 updates of healthy runs), `recall`
    (failures announced in time), each with `_low` and `_high`; `median_lead`, `n_dips`, `dips_alarmed` (count).
    """
    tuned = [(tune(given, ~test), test) for test in track(folds, "tuning without some of the runs", len(folds))]
    return _judged(given, tuned)


def measure(given: Material, detectors: Sequence[Detector]) -> pd.DataFrame:
    """What given detectors, tuned elsewhere, do in all runs; the columns are those of `judge`."""
    return _judged(given, [(detectors, np.ones(len(given.study.panel.runs), dtype=bool))])


def _judged(given: Material, parts: Sequence[tuple[Sequence[Detector], Flags]]) -> pd.DataFrame:
    """The table of detectors that each judge some of the runs."""
    study = given.study
    alarms: dict[str, NDArray[np.bool_]] = {}
    judged: dict[str, Flags] = {}
    shape = (len(study.panel.runs), study.panel.length)
    for detectors, test in parts:
        for one in detectors:
            spoke = _alarms(study, one)
            for name in (one.signal, ANY):
                whole = alarms.setdefault(name, np.zeros(shape, dtype=bool))
                whole[test] |= spoke[test]
                judged.setdefault(name, np.zeros(len(test), dtype=bool))[test] = True
    return pd.DataFrame([_row(name, alarms[name], judged[name], given) for name in sorted(alarms, key=_any_first)])


def _alarms(study: Study, detector: Detector) -> NDArray[np.bool_]:
    """Where a detector alarms [N, S]."""
    level = held(study.panel.scores(detector.signal, detector.window), detector.persistence)
    return np.asarray(level > detector.threshold)


def all_detectors(given: Material) -> list[Detector]:
    """The detectors that all runs together choose: the ones to use."""
    return tune(given, np.ones(len(given.study.panel.runs), dtype=bool))


def rate_of(row: pd.Series, name: str) -> Rate | None:
    """A rate of a row of `judge`; None: not measured."""
    value = row[name]
    return None if pd.isna(value) else Rate(float(value), float(row[f"{name}_low"]), float(row[f"{name}_high"]))


def _any_first(name: str) -> tuple[bool, str]:
    return name != ANY, name


def _row(name: str, alarms: NDArray[np.bool_], judged: Flags, given: Material) -> Row:
    study = given.study
    known = judged & (np.isfinite(study.panel.values[name]).any(axis=1) if name != ANY else True)
    did = outcomes(np.where(alarms, 1.0, 0.0), 0.5, given.time)
    healthy, failed, dipped = known & study.healthy, known & study.panel.failed, known & study.dipped
    alarmed = np.isfinite(did.first)
    row: Row = {"signal": name, "n_healthy": int(healthy.sum()), "n_collapsed": int(failed.sum())}
    row["configurations"] = int(np.unique(study.configuration[healthy]).size)
    row |= _with_interval("healthy_alarmed", clustered_share(alarmed[healthy], study.configuration[healthy]))
    false = clustered_ratio(did.false[healthy], did.exposure[healthy], study.configuration[healthy], 1000.0)
    row |= _with_interval("false_per_1000", false)
    row |= _with_interval("recall", clustered_share(did.caught[failed], study.configuration[failed]))
    row["median_lead"] = _median_lead(did, failed)
    return row | {"n_dips": int(dipped.sum()), "dips_alarmed": int(alarmed[dipped].sum())}


def _median_lead(did: Outcomes, failed: Flags) -> float:
    leads = did.lead[failed & did.caught]
    return float(np.median(leads)) if leads.size else float("nan")


def _with_interval(name: str, rate: Rate | None) -> Row:
    value = rate or Rate(float("nan"), float("nan"), float("nan"))
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
