"""Methods against one another at their best learning rates: rankings, probability of improvement, profiles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.comparison.aggregates import (
    REPLICATIONS,
    BootstrapEstimate,
    Strata,
    aggregates,
    performance_profile,
    probability_of_improvement,
)
from vcpo_bench.analysis.comparison.best_learning_rate import widening
from vcpo_bench.analysis.comparison.normalized_rewards import RAW
from vcpo_bench.analysis.intervals import ENOUGH, stratified_t, within_unit

PROFILE_LEVELS = np.round(np.linspace(-1.0, 1.5, 51), 2)
RAW_LEVELS = np.round(np.linspace(0.0, 1.0, 51), 2)


def ranking(runs: pd.DataFrame, column: str, replications: int = REPLICATIONS) -> pd.DataFrame:
    """Aggregates per method and lag, best first, task and regime being the strata.

    Args:
        runs: One row per run.
        column: Which score.
        replications: Of the stratified bootstrap.

    Returns:
        Columns `staleness`, `method`, `seeds` (fewest in a task), `runs`, how many `collapsed` and how many are
        `scored`, then `iqm`, `mean`, `median`, `optimality_gap`, each with `_low` and `_high`, widened for tuned runs
        (`analysis.comparison.best_learning_rate.CROSS_FIT`), within the range of rewards where these are what is
        ranked, and NaN with fewer than `ENOUGH` scores.
    """
    rows = []
    for name, part in runs.groupby(["staleness", "method"], sort=False):
        strata = [one[column].dropna().to_numpy(dtype=np.float64) for _, one in part.groupby(["task", "regime"])]
        row = dict(zip(("staleness", "method"), name, strict=True))
        seeds = min((len(one) for one in strata), default=0)
        row |= {"seeds": seeds, "runs": len(part)}
        row |= {"collapsed": int(part["collapsed"].sum()), "scored": sum(map(len, strata))}
        for statistic, estimate in aggregates(strata, replications).items():
            low, high = _ends(part, column, estimate) if sum(map(len, strata)) >= ENOUGH else (np.nan, np.nan)
            row |= {statistic: estimate.value, f"{statistic}_low": low, f"{statistic}_high": high}
        rows.append(row)
    names = ["iqm", "mean", "median", "optimality_gap"]
    columns = ["staleness", "method", "seeds", "runs", "collapsed", "scored"]
    columns += [f"{one}{end}" for one in names for end in ("", "_low", "_high")]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["staleness", "iqm"], ascending=[True, False], ignore_index=True)


def task_means(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean score per task, lag and method with its Student-t interval over seeds, and failures.

    Of several regimes it is the mean of their means, with the interval from the spread within each.
    """
    rows = []
    for name, part in runs.groupby(["task", "staleness", "method"]):
        strata = [own[column] for _, own in part.groupby("regime")]
        mean, low, high, _ = stratified_t(strata, widen=widening(part))
        low, high = within_unit(part[column], low, high) if column == RAW else (low, high)
        low, high = (low, high) if part[column].count() >= ENOUGH else (np.nan, np.nan)
        row = dict(zip(("task", "staleness", "method"), name, strict=True)) | {"seeds": int(part[column].count())}
        row |= {"mean": mean, "low": low, "high": high}
        rows.append(row | {"reward": part["score"].mean(), "collapsed": int(part["collapsed"].sum())})
    columns = ["task", "staleness", "method", "seeds", "mean", "low", "high", "reward", "collapsed"]
    return pd.DataFrame(rows, columns=columns)


def improvement_table(runs: pd.DataFrame, column: str, replications: int = REPLICATIONS) -> pd.DataFrame:
    """Probability that a run of the first method beats a run of the second, per lag, averaged over tasks.

    The bootstrap treats runs as independent; those of tuned methods are so only within each half.
    Columns `staleness`, `first`, `second`, `probability`, `low`, `high`.
    """
    rows = []
    for lag, here in runs.groupby("staleness"):
        places = sorted(set(zip(here["task"], here["regime"], strict=True)))
        strata = {name: _strata(part, column, places) for name, part in here.groupby("method")}
        for first, second in combinations(strata, 2):
            estimate = probability_of_improvement(strata[first], strata[second], replications)
            few = min(sum(map(len, strata[name])) for name in (first, second)) < ENOUGH
            rows.append((lag, first, second, estimate.value, *((np.nan, np.nan) if few else estimate[1:])))
    return pd.DataFrame(rows, columns=["staleness", "first", "second", "probability", "low", "high"])


def profile_table(runs: pd.DataFrame, column: str, replications: int = REPLICATIONS) -> pd.DataFrame:
    """Performance profiles over task, lag and seed: share of a method's runs that score above each level.

    Columns `method`, `level` (-1 to 1.5, of raw rewards 0 to 1), `share`, `low`, `high`.
    """
    parts, levels = [], RAW_LEVELS if column == RAW else PROFILE_LEVELS
    for method, part in runs.groupby("method", sort=False):
        groups = part.groupby(["task", "regime", "staleness"])
        strata = [one[column].dropna().to_numpy(dtype=np.float64) for _, one in groups]
        share, low, high = performance_profile(strata, levels, replications)
        if sum(map(len, strata)) < ENOUGH:
            low, high = np.full_like(share, np.nan), np.full_like(share, np.nan)
        columns = {"method": method, "level": levels, "share": share, "low": low, "high": high}
        parts.append(pd.DataFrame(columns))
    names = ["method", "level", "share", "low", "high"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)


def _ends(part: pd.DataFrame, column: str, estimate: BootstrapEstimate) -> tuple[float, float]:
    """Interval of an aggregate of these runs."""
    low, high = (estimate.value + widening(part) * (end - estimate.value) for end in estimate[1:])
    return within_unit(part[column], low, high) if column == RAW else (low, high)


def _strata(part: pd.DataFrame, column: str, places: list[tuple[str, str]]) -> Strata:
    """Finite scores per (task, regime) in the order of `places`; empty where there are none."""
    groups = {name: one[column].dropna().to_numpy(dtype=np.float64) for name, one in part.groupby(["task", "regime"])}
    return [groups.get(place, np.array([])) for place in places]
