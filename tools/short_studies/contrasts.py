"""Paired comparisons over seeds, of methods at one rate or at the best of several: intervals, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from vcpo_bench.analysis.intervals import holm, stratified_t, t_interval

MARGIN = 0.05
"""Reward below which a difference does not matter."""
LEVEL = 0.05
DRAWS = 2000

Record = Mapping[str, object]


def best_rate(runs: pd.DataFrame) -> tuple[float, bool]:
    """The rate with the highest mean reward over seeds, and whether it lies at an edge of the rates tried."""
    rewards = runs.groupby("lr")["final_reward"].mean().sort_index()
    place = int(rewards.to_numpy(float).argmax())
    return float(rewards.index.to_numpy(float)[place]), place in (0, len(rewards) - 1)


def best_mean(runs: pd.DataFrame) -> dict[str, float]:
    """The highest mean reward among the rates, as `reward`, with its 95% interval as `low` and `high`.

    The interval counts that other seeds could have chosen another rate: seeds are drawn again, the best rate is chosen
    anew, and the spread of that is the standard error of a t interval.

    Args:
        runs: Of one task and method, with the same seeds at several rates.
    """
    value, error, seeds = _tuned([_rewards(runs)])
    half = float(special.stdtrit(seeds - 1, 0.975)) * error
    return {"reward": value, "low": value - half, "high": value + half}


def tuned_contrast(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """Difference of the best means of two methods, paired by seed, each at the best of its own rates.

    As in `best_mean` the choice of both rates is part of the error. In simulated studies of 16 seeds and six rates two
    equal methods are told apart (p below 5%) in 1 to 6%.

    Args:
        one: Its runs, with the same seeds at several rates.
        other: Likewise, with the seeds of `one`.

    Returns:
        As `contrast`.
    """
    value, error, seeds = _tuned([_rewards(one), _rewards(other)])
    half, half90 = (float(special.stdtrit(seeds - 1, level)) * error for level in (0.975, 0.95))
    p = float(2 * special.stdtr(seeds - 1, -abs(value) / error)) if error > 0 else 1.0 if value == 0 else 0.0
    return {"seeds": seeds, "difference": value, "low": value - half, "high": value + half} | {
        "low90": value - half90,
        "high90": value + half90,
        "p": p,
    }


def _rewards(runs: pd.DataFrame) -> NDArray[np.float64]:
    """Final rewards, [seeds, rates]."""
    table = runs.pivot_table(index="seed", columns="lr", values="final_reward")
    return table.sort_index().sort_index(axis=1).to_numpy(float)


def _tuned(rewards: Sequence[NDArray[np.float64]]) -> tuple[float, float, int]:
    """The best mean of the first less that of the second if there is one, its standard error, and the seeds."""
    seeds = len(rewards[0])
    drawn = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), DRAWS) / seeds
    signs = (1.0, -1.0)
    value = sum(sign * each.mean(axis=0).max() for sign, each in zip(signs, rewards, strict=False))
    again = sum(sign * (drawn @ each).max(axis=1) for sign, each in zip(signs, rewards, strict=False))
    return float(value), float(np.std(again, ddof=1) * np.sqrt(seeds / (seeds - 1))), seeds


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
        else:
            verdicts.append("equivalent" if low >= -MARGIN and high <= MARGIN else "undecided")
    return adjusted.assign(verdict=verdicts)


def mean_row(values: pd.Series, name: str) -> dict[str, float]:
    """Mean over seeds under a name, with its 95% t interval as `low` and `high`."""
    low, high = t_interval(values.to_numpy(float))
    return {name: float(np.nanmean(values.to_numpy(float))), "low": low, "high": high}
