"""Paired comparisons over seeds, of methods at one rate or at rates chosen on other seeds: intervals, verdicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import holm, stratified_t, t_interval

MARGIN = 0.05
"""Reward below which a difference does not matter."""
LEVEL = 0.05

Record = Mapping[str, object]


def best_rate(runs: pd.DataFrame) -> tuple[float, bool]:
    """The rate with the highest mean reward over seeds, and whether it lies at an edge of the rates tried."""
    rewards = runs.groupby("lr")["final_reward"].mean().sort_index()
    place = int(rewards.to_numpy(float).argmax())
    return float(rewards.index.to_numpy(float)[place]), place in (0, len(rewards) - 1)


def contrast(one: pd.Series, other: pd.Series) -> dict[str, float]:
    """Mean difference of two values per seed, with its 95% and 90% t intervals over seeds and p against 0.

    Args:
        one: Indexed by seed.
        other: Likewise; only seeds of both count.
    """
    differences = (one - other).dropna().to_numpy(float)
    mean, low, high, p = stratified_t([differences])
    low90, high90 = t_interval(differences, 0.90)
    return {"seeds": differences.size, "difference": mean, "low": low, "high": high} | {
        "low90": low90,
        "high90": high90,
        "p": p,
    }


def judged(table: pd.DataFrame, better: str, worse: str) -> pd.DataFrame:
    """A table of contrasts with `p_holm`, adjusted over all its rows, and a `verdict`.

    Args:
        table: Rows of `contrast`.
        better: The verdict where the adjusted p is below 5% and the difference above 0.
        worse: The same with the difference below 0.

    Returns:
        Verdicts besides these two: `equivalent` where the 90% interval lies within the margin, else `undecided`.
    """
    adjusted = table.assign(p_holm=holm(table["p"]))
    verdicts = []
    for difference, low, high, p in adjusted[["difference", "low90", "high90", "p_holm"]].itertuples(index=False):
        if p < LEVEL:
            verdicts.append(better if difference > 0 else worse)
        else:  # an undefined p (too few seeds) is below nothing, and its interval within nothing
            verdicts.append("equivalent" if low >= -MARGIN and high <= MARGIN else "undecided")
    return adjusted.assign(verdict=verdicts)


def mean_row(values: pd.Series, name: str) -> dict[str, float]:
    """Mean over seeds under a name, with its 95% t interval as `low` and `high`."""
    low, high = t_interval(values.to_numpy(float))
    return {name: float(np.nanmean(values.to_numpy(float))), "low": low, "high": high}
