"""How much sooner than synchronous training? Time to non-inferiority, and the ratio at every share of the gain."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.comparison.normalized_rewards import NormalizedRewards
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.percentile_interval import percentile_interval

SHARES = (0.25, 0.5, 0.75, 0.9, 0.95)
"""Shares of the synchronous gain at which times are compared."""

NOT_INFERIOR = (0.9, 0.95)
"""Shares that count as not inferior: within 10% and 5% of the gain of the synchronous plateau."""

REPLICATIONS = 1000

_MEASURES = ("updates", "seconds")
Array = NDArray[np.float64]


def speedup_table(times: pd.DataFrame, runs: pd.DataFrame, rewards: NormalizedRewards) -> pd.DataFrame:
    """Mean time of each method to each share of the gain, beside that of the synchronous runs behind the anchor.

    A run that does not arrive counts with its whole budget. A ratio is thus too large where runs of the method do not
    arrive, and too small where synchronous ones do not. Where fewer than half of the synchronous runs arrive, there is
    nothing to compare with, and no row.

    Args:
        times: Of `time_to_target.target_times` at `SHARES`.
        runs: The runs to summarize (those at best learning rates), with `key`, `task`, `method`, `staleness`, `seed`.
        rewards: With the anchors, and all cells.

    Returns:
        Columns `task`, `staleness`, `method`, `share`, `reached` of `total` runs, `sync_reached` of `sync_total`; mean
        `updates`, `trajectories` (consumed until then) and `seconds`; `updates_ratio` and `seconds_ratio`,
        synchronous over method, above 1 where the method is sooner, each with `_low` and `_high`: 95% bootstrap
        of seeds, which are drawn together where both have the same ones.
    """
    rows = []
    for anchor in rewards.anchors[rewards.anchors["usable"]].to_dict("records"):
        task = anchor["task"]
        own = rewards.table[(rewards.table["task"] == task) & (rewards.table["staleness"] == 0)]
        own = own[(own["method"] == anchor["sync_method"]) & (own["lr"] == anchor["sync_lr"])]
        reference = times.merge(own[["key", "seed"]], on="key")
        here = times.merge(runs.loc[runs["task"] == task, ["key", "method", "staleness", "seed"]], on="key")
        for (lag, method, share), part in here.groupby(["staleness", "method", "target"], sort=False):
            sync = reference[reference["target"] == share]
            if 2 * sync["reached"].sum() >= len(sync) > 0:
                rows.append({"task": task, "staleness": lag, "method": method, "share": share} | _compare(part, sync))
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = ["task", "staleness", "method", "share", "reached", "total", "sync_reached", "sync_total", "updates"]
_COLUMNS += ["trajectories", "seconds"]
_COLUMNS += [f"{measure}_ratio{end}" for measure in _MEASURES for end in ("", "_low", "_high")]


def _compare(part: pd.DataFrame, sync: pd.DataFrame) -> dict[str, float]:
    facts: dict[str, float] = {"reached": int(part["reached"].sum()), "total": len(part)}
    facts |= {"sync_reached": int(sync["reached"].sum()), "sync_total": len(sync)}
    facts |= {name: float(part[name].mean()) for name in ("updates", "trajectories", "seconds")}
    for measure in _MEASURES:
        value, low, high = _ratio(_by_seed(part, measure), _by_seed(sync, measure))
        facts |= {f"{measure}_ratio": value, f"{measure}_ratio_low": low, f"{measure}_ratio_high": high}
    return facts


def _by_seed(part: pd.DataFrame, measure: str) -> tuple[Array, Array]:
    """The seeds [n] of which a time is known, and the mean of each [n].

    Runs of one seed, under several regimes, are averaged first: they are not independent.
    """
    seeds, place = np.unique(part["seed"].to_numpy(), return_inverse=True)
    times = part[measure].to_numpy(np.float64)
    known = ~np.isnan(times)
    total = np.bincount(place[known], weights=times[known], minlength=len(seeds))
    number = np.bincount(place[known], minlength=len(seeds))
    some = number > 0
    return seeds[some], total[some] / number[some]


def _ratio(own: tuple[Array, Array], sync: tuple[Array, Array]) -> tuple[float, float, float]:
    """Mean of `sync` over mean of `own`, with a bootstrap interval; NaN for the interval of fewer than `ENOUGH`.

    All are NaN where no time was recorded.
    """
    below, above = own[1], sync[1]
    if not below.any() or not above.size:
        return float("nan"), float("nan"), float("nan")
    value = float(above.mean() / below.mean())
    if min(len(above), len(below)) < ENOUGH:
        return value, float("nan"), float("nan")
    drawn, others = _draws(len(below), None if np.array_equal(own[0], sync[0]) else len(above))
    low, high = percentile_interval(value, above[others].mean(1) / below[drawn].mean(1))
    return value, low, high


@lru_cache(maxsize=4)  # as good as all comparisons of a study have as many seeds
def _draws(number: int, others: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which seeds each replicate draws [R, n], and which of the others; without a number, these are the same."""
    random = np.random.default_rng(0)
    drawn = random.integers(number, size=(REPLICATIONS, number))
    return drawn, drawn if others is None else random.integers(others, size=(REPLICATIONS, others))
