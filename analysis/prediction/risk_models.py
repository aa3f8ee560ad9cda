"""Models of the probability that a run fails within HORIZON updates, judged on held-out seeds.

Discrimination: Uno's C (pairs weighted by the inverse probability of not being censored) and, at each landmark, the
cumulative/dynamic AUC. Calibration: predicted against observed share, and the Brier score against Kaplan-Meier, which
knows only the step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.survival import kaplan_meier
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.added_value_of_ess import baselines, held_out_odds
from vcpo_bench.analysis.prediction.auroc import auroc_row
from vcpo_bench.analysis.prediction.covariates import FATE, features
from vcpo_bench.analysis.prediction.landmarks import Comparison, bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.logistic import fit
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Array, Flags, Panel
from vcpo_bench.analysis.prediction.precision_recall import Landmarks
from vcpo_bench.analysis.prediction.thresholds import Fold, fold_numbers, folds

HORIZON = 50
"""Updates ahead."""
SPACING = 25
"""Updates between landmarks."""

_BINS = 10
_REPLICATIONS = 500
Row = dict[str, Any]


class HorizonTables(NamedTuple):
    """`models`, `td_auc` and `calibration`."""

    models: pd.DataFrame
    td_auc: pd.DataFrame
    calibration: pd.DataFrame


def horizon_tables(panel: Panel) -> HorizonTables:
    """Fit the models to the other seeds and judge them on the held-out ones.

    - `models`: `model` (circumstances; how the configuration's other seeds ended; everything; each with and without
      ESS), `n_collapsed`, `n_healthy`, `c_index` with interval, `brier`, `brier_null` (Kaplan-Meier
      of the training runs), `skill` (1 - brier / brier_null) with interval, `slope` (of a logistic recalibration;
      1 is calibrated, below it is overconfident), `verdict`;
    - `td_auc`: `model`, `landmark` and the columns of `analysis.prediction.auroc.auroc_row`;
    - `calibration`: `model`, `bin`, `rows`, `predicted`, `observed`, `low`, `high` (configurations resampled).
    """
    parts = folds(panel, "seed")
    tables: dict[str, list[Row]] = {"models": [], "td_auc": [], "calibration": []}
    if parts:
        rows = _landmarks(panel)
        weight = _censoring_weights(panel, rows)
        null = _null(panel, rows, parts)
        draws = bootstrap_draws(panel, _REPLICATIONS)
        for label, names in _models(panel).items():
            chance = _predict(panel, rows, names, parts)
            odds = held_out_odds(panel, [names for _ in parts], PRIMARY_LEAD, parts)
            tables["models"].append({"model": label} | _judge(panel, rows, weight, chance, null, odds, parts, draws))
            tables["td_auc"] += [{"model": label} | row for row in _by_landmark(panel, rows, chance, parts, draws)]
            tables["calibration"] += [{"model": label} | row for row in _bins(panel, rows, weight, chance, draws)]
    return HorizonTables(*(pd.DataFrame(tables[name]) for name in HorizonTables._fields))


def _models(panel: Panel) -> dict[str, list[str]]:
    other = baselines(panel)
    return {
        "circumstances": [],
        "circumstances + ESS": [PRIMARY],
        "configuration": [FATE],
        "configuration + ESS": [FATE, PRIMARY],
        "everything but ESS": other,
        "everything": [*other, PRIMARY],
    }


def _landmarks(panel: Panel) -> Landmarks:
    """Runs at risk at each landmark s and their outcome by s + HORIZON; earlier censored ones are left out."""
    grid = np.arange(SPACING, panel.length, SPACING)
    at_risk = (panel.found[:, None] > grid) & (panel.end[:, None] >= grid)
    positive = at_risk & (panel.found[:, None] <= grid + HORIZON)
    survived = at_risk & ~positive & (panel.end[:, None] >= grid + HORIZON)
    run, column = np.nonzero(positive | survived)
    return Landmarks(run, grid[column] - 1, grid[column], positive[run, column], column)


def _censoring_weights(panel: Panel, rows: Landmarks) -> Array:
    """Inverse probability [R] of being watched until the outcome is known, given being watched at s."""
    until = np.where(rows.positive, panel.found[rows.run] - 1, rows.found + HORIZON)
    now = _watched(panel, rows.found.astype(np.float64) - 1)
    return np.asarray(now / np.maximum(_watched(panel, np.maximum(until - 1, 0.0)), 1e-9))


def _watched(panel: Panel, time: Array) -> Array:
    """Kaplan-Meier probability of being watched beyond each time; the budget's end does not censor."""
    seen = np.where(panel.failed, panel.found, panel.end)
    cut = ~panel.failed & (panel.end < panel.end.max(initial=0))
    curve = kaplan_meier(seen, cut)
    place = np.searchsorted(curve["time"].to_numpy(), time, side="right") - 1
    return np.asarray(curve["survival"].to_numpy()[np.maximum(place, 0)])


def _null(panel: Panel, rows: Landmarks, parts: list[Fold]) -> Array:
    """Share that fails within the horizon, by Kaplan-Meier of the training runs [R]."""
    chance = np.full(rows.run.size, np.nan)
    for fold in parts:
        seen = np.where(panel.failed, panel.found, panel.end)[fold.train]
        curve = kaplan_meier(seen, panel.failed[fold.train])
        time, survival = curve["time"].to_numpy(), curve["survival"].to_numpy()
        test = fold.test[rows.run]
        begin = survival[np.searchsorted(time, rows.found[test], side="right") - 1]
        end = survival[np.searchsorted(time, rows.found[test] + HORIZON, side="right") - 1]
        chance[test] = 1 - end / np.maximum(begin, 1e-9)
    return chance


def _predict(panel: Panel, rows: Landmarks, names: list[str], parts: list[Fold]) -> Array:
    """Probability of failing within the horizon, from models fitted to the other folds [R]."""
    chance = np.full(rows.run.size, np.nan)
    for fold in parts:
        train, test = fold.train[rows.run], fold.test[rows.run]
        if rows.positive[train].any() and test.any():
            table = features(panel, rows, names, train)
            chance[test] = fit(table[train], rows.positive[train]).probability(table[test])
    return chance


def _judge(
    panel: Panel,
    rows: Landmarks,
    weight: Array,
    chance: Array,
    null: Array,
    odds: Array,
    parts: list[Fold],
    draws: Array,
) -> Row:
    groups = fold_numbers(parts, len(panel.runs))
    pairs = compare(odds, risk_sets(panel, PRIMARY_LEAD, (), groups, guard=0))
    known = np.isfinite(chance)
    failed, healthy = _ends(panel, rows, known)
    row: Row = {"n_collapsed": failed.size, "n_healthy": healthy.size}
    if not panel.enough(failed, healthy):
        return row | {"verdict": TOO_FEW}
    value, drawn = _uno(pairs, panel, draws)
    row |= _estimate("c_index", value, drawn)
    loss = _per_run(weight * (chance - rows.positive) ** 2, rows.run, known, len(panel.runs))
    reference = _per_run(weight * (null - rows.positive) ** 2, rows.run, known, len(panel.runs))
    number = _per_run(weight, rows.run, known, len(panel.runs))
    row |= {"brier": loss.sum() / number.sum(), "brier_null": reference.sum() / number.sum()}
    skill = 1 - (draws @ loss) / (draws @ reference)
    row |= _estimate("skill", float(1 - loss.sum() / reference.sum()), skill)
    clipped = np.clip(chance[known], 1e-6, 1 - 1e-6)
    recalibrated = fit(np.log(clipped / (1 - clipped))[:, None], rows.positive[known], ridge=0.0)
    row["slope"] = float(recalibrated.coefficients[1])
    low = row["skill_low"]
    return row | {"verdict": "better than the step alone" if low > 0 else "no better than the step alone"}


def _ends(panel: Panel, rows: Landmarks, known: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The runs that fail within the horizon of a known row, and those of a known row that never fail."""
    watched = np.unique(rows.run[known])
    return np.unique(rows.run[rows.positive & known]), watched[panel.healthy[watched]]


def _uno(pairs: Comparison, panel: Panel, draws: Array) -> tuple[float, Array]:
    """Uno's C: pairs of a failed run and one that has not failed, weighted by 1 / G(time)^2."""
    weight = 1 / np.maximum(_watched(panel, panel.found[pairs.case] - 1), 1e-9) ** 2
    above = weight[:, None] * pairs.wins * pairs.usable
    below = weight[:, None] * pairs.usable
    mine = draws[:, pairs.case]
    total = (mine * (draws @ below.T)).sum(axis=1)
    drawn = (mine * (draws @ above.T)).sum(axis=1) / np.maximum(total, 1e-9)
    return float(above.sum() / below.sum()), drawn[total > 0]


def _by_landmark(panel: Panel, rows: Landmarks, chance: Array, parts: list[Fold], draws: Array) -> list[Row]:
    """Cumulative/dynamic AUC at each landmark: failed within the horizon against not failed, in the same fold."""
    groups = fold_numbers(parts, len(panel.runs))
    result = []
    for landmark in np.unique(rows.found):
        here = (rows.found == landmark) & np.isfinite(chance)
        case, other = rows.run[here & rows.positive], rows.run[here & ~rows.positive]
        score = np.full(len(panel.runs), np.nan)
        score[rows.run[here]] = chance[here]
        control = np.zeros(len(panel.runs), dtype=bool)
        control[other] = True
        usable = control[None, :] & (groups[case][:, None] == groups[None, :])
        own = score[case][:, None]
        wins = np.where(np.isnan(score)[None, :], 0.0, (score < own) + 0.5 * (score == own))
        kept = usable.any(axis=1)
        one = Comparison(case[kept], usable[kept], wins[kept], groups[case][kept])
        result.append({"landmark": int(landmark)} | auroc_row(one, panel, draws))
    return result


def _bins(panel: Panel, rows: Landmarks, weight: Array, chance: Array, draws: Array) -> list[Row]:
    """Predicted against observed in tenths of the rows, where the study is large enough."""
    known = np.isfinite(chance)
    if not panel.enough(*_ends(panel, rows, known)):
        return []
    edges = np.quantile(chance[known], np.linspace(0, 1, _BINS + 1)[1:-1])
    member = np.searchsorted(edges, chance, side="right")
    result = []
    for number in range(_BINS):
        here = known & (member == number)
        if not here.any():
            continue
        above = _per_run(weight * rows.positive, rows.run, here, len(panel.runs))
        below = _per_run(weight, rows.run, here, len(panel.runs))
        total = draws @ below
        drawn = (draws @ above)[total > 0] / total[total > 0]
        observed = float(above.sum() / below.sum())
        low, high = percentile_interval(observed, drawn)
        row: Row = {"bin": number, "rows": int(here.sum()), "predicted": float(chance[here].mean())}
        result.append(row | {"observed": observed, "low": low, "high": high})
    return result


def _per_run(values: Array, run: NDArray[np.int64], kept: Flags, runs: int) -> Array:
    return np.bincount(run[kept], weights=values[kept], minlength=runs).astype(np.float64)


def _estimate(name: str, value: float, drawn: Array) -> Row:
    low, high = percentile_interval(value, drawn)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
