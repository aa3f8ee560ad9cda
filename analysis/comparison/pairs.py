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
from vcpo_bench.analysis.intervals import can_decide, holm, sign_flip, stratified_t
from vcpo_bench.analysis.wording import counted

PLACE = ("task", "regime", "staleness", "seed")
"""What two runs at their best learning rates must share to be a pair; at a fixed learning rate also `lr`."""


class Contrast(NamedTuple):
    """A weighted sum of methods' scores, averaged over strata.

    Attributes:
        estimate: Mean over strata of the mean over pairs.
        low: 95% Student-t interval from the spread within strata, lower end; for tuned runs widened as
            `analysis.comparison.best_learning_rate.CROSS_FIT` says, and p with it.
        high: Upper end.
        p: Two-sided p of the same t test.
        p_exact: Two-sided sign-flip p over all pairs: no assumption about distributions, but independent pairs.
        pairs: How many seeds times places it rests on.
    """

    estimate: float
    low: float
    high: float
    p: float
    p_exact: float
    pairs: int


def contrast(runs: pd.DataFrame, weights: Mapping[str, float], column: str, place: Sequence[str] = PLACE) -> Contrast:
    """Estimate `sum_m weights[m] score_m` over all places where every method of `weights` has a score.

    Args:
        runs: One row per method and place.
        weights: Coefficient of each method.
        column: Which score.
        place: Columns that identify a place; all but the seed are strata.
    """
    methods = list(weights)
    needed = list(dict.fromkeys((*place, "method", column, *runs.columns.intersection(["rates"]))))
    wanted = runs.loc[runs["method"].isin(methods), needed]
    places, scores = _side_by_side(wanted.dropna(subset=[*place, column]), methods, column, place)
    if not len(scores) or np.isnan(scores).all(axis=0).any():
        return Contrast(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    values = (scores * np.array(list(weights.values()))).sum(axis=1)
    paired = ~np.isnan(values)
    stratum, values = places[paired], values[paired]
    groups = [values[stratum == one] for one in np.unique(stratum)]
    return Contrast(*stratified_t(groups, widen=widening(wanted)), sign_flip(values), len(values))


def _side_by_side(
    runs: pd.DataFrame, methods: Sequence[str], column: str, place: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The stratum of each place [P], and the mean score of each method there [P, M]; NaN where it has none."""
    at = runs.groupby(list(place), observed=True).ngroup().to_numpy()
    strata = runs.groupby([name for name in place if name != "seed"], observed=True).ngroup().to_numpy()
    number = int(at.max(initial=-1)) + 1
    cell = at * len(methods) + pd.Index(methods).get_indexer(pd.Index(runs["method"]))
    total = np.bincount(cell, weights=runs[column].to_numpy(np.float64), minlength=number * len(methods))
    count = np.bincount(cell, minlength=number * len(methods))
    stratum = np.zeros(number, dtype=np.int64)
    stratum[at] = strata
    return stratum, np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(number, len(methods))


def decidable(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows of contrasts are judged: an exact test of their pairs can reach the level, and their p is known."""
    enough = np.array([can_decide(int(pairs)) for pairs in table["pairs"]], dtype=bool)
    return enough & table["p"].notna().to_numpy()


def why_not_judged(table: pd.DataFrame) -> str:
    """Why rows that are not `decidable` are not judged, as a clause."""
    pairs = int(table["pairs"].max())
    if not pairs:
        return "no two runs make a pair"
    if can_decide(pairs):
        return "one of the tasks has a single pair, so that its spread is unknown"
    return f"an exact test of at most {counted(pairs, 'pair')} of runs cannot reach the 5% level"


def all_pairs(runs: pd.DataFrame, column: str, place: Sequence[str] = PLACE) -> pd.DataFrame:
    """Every pair of methods at every lag: first minus second, the first being the better one.

    Columns: `staleness`, `first`, `second`, those of `Contrast`, and `p_holm`: p adjusted by Holm for
    all pairs of that lag.
    """
    rows = []
    for lag, here in runs.groupby("staleness"):
        means = here.groupby("method")[column].mean().sort_values(ascending=False)
        pairs = [
            {"staleness": lag, "first": a, "second": b} | contrast(here, {a: 1.0, b: -1.0}, column, place)._asdict()
            for a, b in combinations(means.index, 2)
        ]
        adjusted = holm(np.array([pair["p"] for pair in pairs], dtype=np.float64))
        rows += [pair | {"p_holm": p} for pair, p in zip(pairs, adjusted, strict=True)]
    columns = ["staleness", "first", "second", *Contrast._fields, "p_holm"]
    return pd.DataFrame(rows, columns=columns)
