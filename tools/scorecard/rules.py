"""The few rules by which figures become verdicts. Each can say reproduced, refuted and undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from vcpo_bench.analysis.intervals import t_interval, wilson

from .fact import NAN, Part, Verdict

T = TypeVar("T")
SEEDS = "seeds, t interval"
RUNS = "runs, Wilson interval"


def above(low: float, high: float, bar: float = 0.0) -> Verdict:
    """Whether an interval lies above a bar (reproduced), below it (refuted), or neither."""
    return "reproduced" if low > bar else "refuted" if high < bar else "undecided"


def within(low: float, high: float, least: float, most: float) -> Verdict:
    """Whether an interval lies within bounds (reproduced), outside of them (refuted), or neither."""
    if least <= low and high <= most:
        return "reproduced"
    return "refuted" if high < least or low > most else "undecided"


def mean_above(name: str, figure: str, values: ArrayLike, bar: float = 0.0) -> Part:
    """Judge the mean of one value per seed against a bar; `{}` in the figure is the number with its interval."""
    low, high = t_interval(values)
    return _mean(name, figure, values, low, high, above(low, high, bar))


def mean_within(name: str, figure: str, values: ArrayLike, least: float, most: float) -> Part:
    """Judge whether the mean of one value per seed lies within bounds."""
    low, high = t_interval(values)
    return _mean(name, figure, values, low, high, within(low, high, least, most))


def share_above(name: str, figure: str, count: int, total: int, bar: float) -> Part:
    """Judge a share of runs against a bar by its Wilson interval; without runs it is undecided."""
    if not total:
        return Part(name, "undecided", figure.format("no run qualifies"), unit=RUNS)
    low, high = wilson(count, total)
    text = figure.format(f"{count} of {total} [{low:.2f}, {high:.2f}]")
    return Part(name, above(low, high, bar), text, count / total, low, high, RUNS)


def paired(table: pd.DataFrame, one: str, other: str, column: str) -> pd.Series:
    """Difference of two methods in a column, per seed."""
    wide = table.pivot_table(index="seed", columns="method", values=column)
    return (wide[one] - wide[other]).dropna()


def slopes(runs: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Slope of a column on log2 of another, by seed (rows) and method (columns)."""
    rows = [
        (seed, method, float(np.polyfit(np.log2(own[x].to_numpy(float)), own[y].to_numpy(float), 1)[0]))
        for (seed, method), own in runs.groupby(["seed", "method"])
    ]
    return pd.DataFrame(rows, columns=pd.Index(["seed", "method", "slope"])).pivot(
        index="seed", columns="method", values="slope"
    )


def bootstrap(groups: Sequence[T], estimate: Callable[[list[T]], float], resamples: int = 200) -> tuple[float, float]:
    """95% interval of an estimate when whole groups (runs, or seeds) are drawn again; fixed random numbers."""
    random = np.random.default_rng(0)
    draws = random.integers(len(groups), size=(resamples, len(groups)))
    found = [estimate([groups[i] for i in draw]) for draw in draws]
    low, high = np.nanquantile(found, (0.025, 0.975)) if np.isfinite(found).any() else (NAN, NAN)
    return float(low), float(high)


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's; 0 where one of them is constant."""
    ranks = [pd.Series(np.asarray(values, dtype=float)).rank() for values in (one, other)]
    if min(rank.nunique() for rank in ranks) < 2:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def number(value: float, low: float, high: float) -> str:
    """A figure with its interval."""
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"


def _mean(name: str, figure: str, values: ArrayLike, low: float, high: float, verdict: Verdict) -> Part:
    value = float(np.mean(np.asarray(values, dtype=float)))
    return Part(name, verdict, figure.format(number(value, low, high)), value, low, high, SEEDS)
