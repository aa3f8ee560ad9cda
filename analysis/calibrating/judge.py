"""Error rates of tuned detectors on configurations that did not choose them, of each part and of all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.calibrating.runs import CalibrationRuns
from vcpo_bench.analysis.calibrating.tune import Material, tune
from vcpo_bench.analysis.monitoring.calibration import Rate
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.prediction.alarm_outcomes import held, outcomes
from vcpo_bench.analysis.prediction.clusters import clustered_ratio, clustered_share
from vcpo_bench.analysis.prediction.panel import Array, Flags
from vcpo_bench.progress import track

FOLDS = 5
DEALS = 10
"""Ways of dealing the configurations into folds that are averaged: one may say 9% where another says 18%."""
ANY = "any of them"
"""The row of all detectors together."""

Row = dict[str, Any]


@dataclass(frozen=True)
class HeldOut:
    """What detectors did in runs that had not tuned them.

    Attributes:
        alarms: Per signal, and of any of them, where it alarms [N, S].
        judged: Per signal, and of any of them, the runs that it was judged in [N].
    """

    alarms: dict[str, Flags]
    judged: dict[str, Flags]


@dataclass(frozen=True)
class _Mean:
    """What a detector did in each run, averaged over the deals that judged it there; all of shape [N].

    Attributes:
        known: At least half of the deals judged it there.
        alarmed: Share of these deals in which it alarmed.
        caught: Share in which it announced the failure in time.
        false: Alarms that announce nothing.
        exposure: Updates at which an alarm would have been false.
        leads: In updates, of each deal that announced the failure of a known run, one after the other [L].
    """

    known: Flags
    alarmed: Array
    caught: Array
    false: Array
    exposure: Array
    leads: Array


def configuration_folds(study: CalibrationRuns, deal: int = 0) -> list[Flags]:
    """Which runs are held out in each fold: whole configurations, dealt at random; `deal` is the seed."""
    distinct = np.unique(study.configuration)
    dealt = dict(zip(np.random.default_rng(deal).permutation(distinct), range(distinct.size), strict=True))
    fold = np.array([dealt[one] % FOLDS for one in study.configuration])
    return [fold == number for number in range(FOLDS) if (fold == number).any() and not (fold == number).all()]


def configuration_deals(study: CalibrationRuns) -> dict[int, list[Flags]]:
    """Folds by the number of the deal: `DEALS` of them, without those that part the runs as an earlier one does."""
    found: dict[frozenset[bytes], tuple[int, list[Flags]]] = {}
    for deal in range(DEALS):
        folds = configuration_folds(study, deal)
        found.setdefault(frozenset(fold.tobytes() for fold in folds), (deal, folds))
    return dict(found.values())


def group_folds(study: CalibrationRuns) -> list[Flags]:
    """One task held out at a time; empty with a single task."""
    distinct = sorted(set(study.groups))
    return [study.groups == one for one in distinct] if len(distinct) > 1 else []


def judge(given: Material, folds: Sequence[Flags]) -> HeldOut:
    """Detectors in the runs of each fold, tuned on those of the others."""
    tuned = [(tune(given, ~test), test) for test in track(folds, "tuning without some of the runs", len(folds))]
    return spoken(given.study, tuned)


def measure(given: Material, detectors: Sequence[Detector]) -> pd.DataFrame:
    """What given detectors, tuned elsewhere, do in all runs; the columns are those of `rates`."""
    return rates(given, [spoken(given.study, [(detectors, np.ones(len(given.study.panel.runs), dtype=bool))])])


def rates(given: Material, deals: Sequence[HeldOut]) -> pd.DataFrame:
    """Error rates of detectors; with several deals, what they do in each run is averaged before anything is counted.

    Columns: `signal` (or `ANY`), `n_healthy`, `n_collapsed` (runs that at least half of the deals judged it in),
    `configurations` (of these healthy runs), `healthy_alarmed` (share of healthy runs with an alarm), `false_per_1000`
    (alarms per 1,000 updates of healthy runs), `recall` (failures announced in time), each with `_low` and `_high`;
    `median_lead` (of all announcements), `n_dips`, `dips_alarmed` (mean number). Intervals are over configurations;
    they do not include how the thresholds would differ on other runs.
    """
    names = sorted({name for one in deals for name in one.alarms}, key=lambda name: (name != ANY, name))
    return pd.DataFrame([_row(name, _mean(name, given, deals), given.study) for name in names])


def spoken(study: CalibrationRuns, parts: Sequence[tuple[Sequence[Detector], Flags]]) -> HeldOut:
    """What detectors do that each judge some of the runs."""
    done = HeldOut({}, {})
    shape = (len(study.panel.runs), study.panel.length)
    for detectors, test in parts:
        for one in detectors:
            spoke = _alarms(study, one)
            for name in (one.signal, ANY):
                done.alarms.setdefault(name, np.zeros(shape, dtype=bool))[test] |= spoke[test]
                done.judged.setdefault(name, np.zeros(len(test), dtype=bool))[test] = True
    return done


def _alarms(study: CalibrationRuns, detector: Detector) -> NDArray[np.bool_]:
    """Where a detector alarms [N, S]."""
    level = held(study.panel.scores(detector.signal, detector.window), detector.persistence)
    return np.asarray(level > detector.threshold)


def all_detectors(given: Material) -> list[Detector]:
    """The detectors that all runs together choose: the ones to use."""
    return tune(given, np.ones(len(given.study.panel.runs), dtype=bool))


def rate_of(row: pd.Series, name: str) -> Rate | None:
    """A rate of a row of `rates`; None: not measured."""
    value = row[name]
    return None if pd.isna(value) else Rate(float(value), float(row[f"{name}_low"]), float(row[f"{name}_high"]))


def _mean(name: str, given: Material, deals: Sequence[HeldOut]) -> _Mean:
    recorded = np.isfinite(given.study.panel.values[name]).any(axis=1) if name != ANY else True
    sums = np.zeros((5, len(given.study.panel.runs)))
    runs, leads = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for one in deals:
        if name not in one.alarms:
            continue
        did = outcomes(np.where(one.alarms[name], 1.0, 0.0), 0.5, given.time)
        seen = one.judged[name] & recorded
        sums += np.where(seen, [np.ones(len(seen)), np.isfinite(did.first), did.caught, did.false, did.exposure], 0.0)
        runs.append(np.flatnonzero(seen & did.caught))
        leads.append(did.lead[runs[-1]])
    known = sums[0] >= max(len(deals) / 2, 1)
    alarmed, caught, false, exposure = sums[1:] / np.maximum(sums[0], 1.0)
    return _Mean(known, alarmed, caught, false, exposure, np.concatenate(leads)[known[np.concatenate(runs)]])


def _row(name: str, did: _Mean, study: CalibrationRuns) -> Row:
    healthy, failed, dipped = did.known & study.healthy, did.known & study.panel.failed, did.known & study.dipped
    row: Row = {"signal": name, "n_healthy": int(healthy.sum()), "n_collapsed": int(failed.sum())}
    row["configurations"] = int(np.unique(study.configuration[healthy]).size)
    row |= _with_interval("healthy_alarmed", clustered_share(did.alarmed[healthy], study.configuration[healthy]))
    false = clustered_ratio(did.false[healthy], did.exposure[healthy], study.configuration[healthy], 1000.0)
    row |= _with_interval("false_per_1000", false)
    row |= _with_interval("recall", clustered_share(did.caught[failed], study.configuration[failed]))
    row["median_lead"] = float(np.median(did.leads)) if did.leads.size else float("nan")
    return row | {"n_dips": int(dipped.sum()), "dips_alarmed": round(float(did.alarmed[dipped].sum()), 4)}


def _with_interval(name: str, rate: Rate | None) -> Row:
    value = rate or Rate(float("nan"), float("nan"), float("nan"))
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
