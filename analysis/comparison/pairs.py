"""Paired contrasts between methods: same task, lag and seed, hence the same prompts and the same sampling noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.comparison.best_learning_rate import widening
from vcpo_bench.analysis.intervals import ENOUGH, holm, sign_flip, stratified_t
from vcpo_bench.analysis.wording import counted

PLACE = ("task", "regime", "staleness", "seed")
"""What two runs at their best learning rates must share to be a pair; at a fixed learning rate also `lr`."""
UNIT = ("task", "seed")
"""What is independent. Pairs of one seed at several learning rates or regimes share its prompts: they are averaged."""


class Contrast(NamedTuple):
    """A weighted sum of methods' scores, averaged over strata.

    Attributes:
        estimate: Mean over tasks of the mean over seeds.
        low: 95% Student-t interval from the spread within tasks, lower end; for tuned runs widened as
            `analysis.comparison.best_learning_rate.CROSS_FIT` says, and p with it.
        high: Upper end.
        p: Two-sided p of the same t test.
        p_exact: Two-sided sign-flip p over all pairs: no assumption about distributions, but independent pairs.
        pairs: How many seeds times tasks it rests on; with fewer than `ENOUGH` there are no interval and no p.
    """

    estimate: float
    low: float
    high: float
    p: float
    p_exact: float
    pairs: int


def contrast(
    runs: pd.DataFrame,
    weights: Mapping[str, float],
    column: str,
    place: Sequence[str] = PLACE,
    unit: Sequence[str] = UNIT,
) -> Contrast:
    """Estimate `sum_m weights[m] score_m` over all places where every method of `weights` has a score.

    Args:
        runs: One row per method and place.
        weights: Coefficient of each method.
        column: Which score.
        place: Columns that identify a place.
        unit: Columns that identify what is independent; places of one unit are averaged. All but the seed are strata.
    """
    methods = list(weights)
    needed = list(dict.fromkeys((*place, "method", column, *runs.columns.intersection(["rates"]))))
    wanted = runs.loc[runs["method"].isin(methods), needed]
    units, scores = _side_by_side(wanted.dropna(subset=[*place, column]), methods, column, place, unit)
    if not len(scores) or np.isnan(scores).all(axis=0).any():
        return Contrast(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    values = (scores * np.array(list(weights.values()))).sum(axis=1)
    paired = ~np.isnan(values)
    means = pd.Series(values[paired]).groupby([units[name].to_numpy()[paired] for name in ("stratum", "unit")]).mean()
    groups = [own.to_numpy() for _, own in means.groupby(level=0)]
    found = Contrast(*stratified_t(groups, widen=widening(wanted)), sign_flip(means.to_numpy()), len(means))
    if len(means) >= ENOUGH:
        return found
    return found._replace(low=math.nan, high=math.nan, p=math.nan, p_exact=math.nan)


def _side_by_side(
    runs: pd.DataFrame, methods: Sequence[str], column: str, place: Sequence[str], unit: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Stratum and unit of each place [P], and the mean score of each method there [P, M]; NaN where it has none."""
    at = runs.groupby(list(place), observed=True).ngroup().to_numpy()
    strata = runs.groupby([name for name in unit if name != "seed"], observed=True).ngroup().to_numpy()
    units = runs.groupby(list(unit), observed=True).ngroup().to_numpy()
    number = int(at.max(initial=-1)) + 1
    cell = at * len(methods) + pd.Index(methods).get_indexer(pd.Index(runs["method"]))
    total = np.bincount(cell, weights=runs[column].to_numpy(np.float64), minlength=number * len(methods))
    count = np.bincount(cell, minlength=number * len(methods))
    of_place = np.zeros((number, 2), dtype=np.int64)
    of_place[at] = np.column_stack([strata, units])
    return pd.DataFrame(of_place, columns=["stratum", "unit"]), np.where(
        count > 0, total / np.maximum(count, 1), np.nan
    ).reshape(number, len(methods))


def decidable(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows of contrasts are judged: those whose p is known, for which there must be `ENOUGH` pairs."""
    known: NDArray[np.bool_] = table["p"].notna().to_numpy()
    return known


def why_not_judged(table: pd.DataFrame) -> str:
    """Why rows that are not `decidable` are not judged, as a clause."""
    pairs = int(table["pairs"].max())
    if not pairs:
        return "no two runs make a pair"
    if pairs >= ENOUGH:
        return "one of the tasks has a single pair, so that its spread is unknown"
    return f"{counted(pairs, 'pair')} of runs, fewer than {ENOUGH}"


def all_pairs(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Every pair of methods at every lag: first minus second, the first being the better one.

    Columns: `staleness`, `first`, `second`, those of `Contrast`, and `p_holm`: p adjusted by Holm for
    all pairs of that lag.
    """
    rows = []
    for lag, here in runs.groupby("staleness"):
        means = here.groupby("method")[column].mean().sort_values(ascending=False)
        pairs = [
            {"staleness": lag, "first": a, "second": b} | contrast(here, {a: 1.0, b: -1.0}, column)._asdict()
            for a, b in combinations(means.index, 2)
        ]
        adjusted = holm(np.array([pair["p"] for pair in pairs], dtype=np.float64))
        rows += [pair | {"p_holm": p} for pair, p in zip(pairs, adjusted, strict=True)]
    columns = ["staleness", "first", "second", *Contrast._fields, "p_holm"]
    return pd.DataFrame(rows, columns=columns)
