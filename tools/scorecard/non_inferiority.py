"""Fact 2's runs in time: until VCPO is within a margin of synchronous training, and until each share of its gain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from scorecard.facts.f02_large_lag import STEPS, SWEEP, arrival
from scorecard.tables import Tables
from vcpo_bench.analysis.comparison.speedup import SHARES
from vcpo_bench.analysis.percentile_interval import percentile_interval

MARGINS = (0.1, 0.05)
"""Reward below the plateau that still counts as not inferior."""
RESPONSES = 8
REPLICATIONS = 2000


def non_inferiority(tables: Tables) -> pd.DataFrame:
    """Per margin and lag: how many runs arrive, and when. Not registered.

    The plateau is the mean final reward of the synchronous runs. A run arrives at the second of the first two
    consecutive evaluations whose mean is within the margin; one that does not arrive counts with its whole budget.

    Returns:
        Columns `margin` (reward), `lag_asked`, `reached` ("7 of 8"), mean `updates` and `samples` (responses drawn),
        `sooner` (synchronous over lagged mean of updates: below 1 where lag costs time) with its 95% bootstrap
        interval over seeds, paired, as `low` and `high`; empty where no run arrives, for then there is no time.
        Without all runs: no rows.
    """
    return _table(tables, "margin", MARGINS, lambda margin, start, plateau: plateau - margin)


def profile(tables: Tables) -> pd.DataFrame:
    """Per share of the synchronous gain and lag: how many runs arrive there, and when. Not registered.

    The gain is the plateau less the mean reward of the start policy. All else is as in `non_inferiority`, so that where
    only some runs arrive `sooner` is an upper bound.

    Returns:
        Columns of `non_inferiority` with `share` in place of `margin`. Without all runs: no rows.
    """
    return _table(tables, "share", SHARES, lambda share, start, plateau: start + share * (plateau - start))


def _table(
    tables: Tables, name: str, values: tuple[float, ...], target: Callable[[float, float, float], float]
) -> pd.DataFrame:
    """One row per value and lag; `target` is the reward to reach, from a value, the start and the plateau."""
    if tables.missing((SWEEP,)):
        return pd.DataFrame()
    runs = tables.outcomes(SWEEP, until=STEPS)
    plateau = float(runs.loc[runs["staleness"] == 0, "final"].mean())
    start = float(np.mean([tables.curve(run)["sampled_reward"].iloc[0] for run in runs["run"]]))
    rows = []
    for value in values:
        reward = target(value, start, plateau)
        times = runs.assign(updates=[arrival(tables.curve(run), reward) for run in runs["run"]])
        wide = times.pivot(index="seed", columns="staleness", values="updates").sort_index()
        rows += [{name: value, "lag_asked": lag} | _row(wide[lag], wide[0]) for lag in SWEEP.lags]
    return pd.DataFrame(rows)


def _row(own: pd.Series, sync: pd.Series) -> dict[str, object]:
    spent, sync_spent = (one.fillna(STEPS).to_numpy(float) for one in (own, sync))
    facts: dict[str, object] = {"reached": f"{int(own.notna().sum())} of {len(own)}", "updates": spent.mean()}
    facts["samples"] = spent.mean() * SWEEP.prompts * RESPONSES
    drawn = np.random.default_rng(0).integers(len(spent), size=(REPLICATIONS, len(spent)))
    value = float(sync_spent.mean() / spent.mean())
    low, high = percentile_interval(value, sync_spent[drawn].mean(1) / spent[drawn].mean(1))
    known = bool(own.notna().any())
    return facts | {
        name: each if known else float("nan") for name, each in (("sooner", value), ("low", low), ("high", high))
    }
