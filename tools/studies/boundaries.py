"""The largest learning rate that survives, from searches on a ladder of rates, and how it falls with the lag."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .estimates import Estimate, over_seeds

UNIT = ["task", "method", "staleness", "seed"]
"""What one search is of."""


def boundaries(runs: pd.DataFrame, step: float = 2.0) -> pd.DataFrame:
    """Per search, log2 of the rate between the last that survived and the first that failed.

    At an end of the ladder the boundary is set half a rung beyond it.

    Args:
        runs: Of searches: the columns of `UNIT`, `lr`, `failed` and `onset`.
        step: Ratio of neighboring rates.

    Returns:
        The columns of `UNIT`, `log2_rate`, `under` (the lowest rate of the ladder failed already), `over` (no rate
        failed), and `onset` of the run at the first rate that failed.
    """
    lowest, highest = runs["lr"].min(), runs["lr"].max()
    failed = runs[runs["failed"].astype(bool)].sort_values("lr").drop_duplicates(UNIT)
    found = runs[UNIT].drop_duplicates().sort_values(UNIT).merge(failed[[*UNIT, "lr", "onset"]], "left", UNIT)
    first = found.pop("lr")
    found["log2_rate"] = np.log2(first.fillna(step * highest)) - np.log2(step) / 2
    found["under"], found["over"] = np.isclose(first, lowest), first.isna()
    return found[[*UNIT, "log2_rate", "under", "over", "onset"]].reset_index(drop=True)


def last_survivors(runs: pd.DataFrame) -> pd.DataFrame:
    """The run of each search at the largest rate below the first that failed; no row where the lowest one failed."""
    first = runs[runs["failed"].astype(bool)].groupby(UNIT)["lr"].min().rename("first")
    with_first = runs.join(first, on=UNIT)
    survived = with_first[~(with_first["lr"] >= with_first["first"])]  # none failed: NaN, below which all rates lie
    return survived.sort_values("lr").drop_duplicates(UNIT, keep="last")


def rate(bounds: pd.DataFrame) -> float:
    """The geometric mean over seeds."""
    return float(2 ** bounds.groupby("seed")["log2_rate"].mean().mean())


def exponent(bounds: pd.DataFrame, first: int, last: int) -> Estimate:
    """Exponent a of `rate ~ lag^-a` between two lags, seed by seed; 1 is the law of 1 / lag."""
    at = bounds.pivot_table(index="seed", columns="staleness", values="log2_rate")
    return over_seeds((at[first] - at[last]) / np.log2(last / first))


def tolerance(bounds: pd.DataFrame, one: str, other: str) -> Estimate:
    """log2 of how many times the rate of `other` `one` tolerates: a mean over tasks and lags, seed by seed."""
    at = bounds.pivot_table(index=["seed", "task", "staleness"], columns="method", values="log2_rate")
    return over_seeds((at[one] - at[other]).groupby("seed").mean())


def share_of_gain(runs: pd.DataFrame, lag: int) -> pd.Series:
    """By method and rate: the mean outcome at a lag, as a share of the most that synchronous training gained."""
    at = {one: runs[runs["staleness"] == one] for one in (0, lag)}
    return at[lag].groupby(["method", "lr"])["outcome"].mean() / at[0].groupby("lr")["outcome"].mean().max()


def lowest_earns_most(runs: pd.DataFrame, seeds: int) -> tuple[int, int]:
    """In how many places the lowest of the rates earns most, of how many where two rates or more were run.

    Args:
        runs: Columns of `UNIT`, `lr` and `final_reward`.
        seeds: A rate counts where at least so many seeds ran it.
    """
    rates = runs.groupby([*UNIT[:3], "lr"])["final_reward"].agg(["size", "mean"]).query(f"size >= {seeds}")
    places = [own["mean"].to_numpy() for _, own in rates.groupby(level=UNIT[:3]) if len(own) > 1]
    return sum(int(own.argmax() == 0) for own in places), len(places)


def share_of_best(runs: pd.DataFrame) -> pd.DataFrame:
    """By method and rate: the gain as a share of the best of any method and rate there, a mean over places.

    Args:
        runs: Columns of `UNIT`, `rate`, and `area`, which is the gain.

    Returns:
        A column per rate; NaN where a method has not run it in all places.
    """
    means = runs.groupby([*UNIT[:3], "rate"], as_index=False)["area"].mean()
    places = means.groupby(["task", "staleness"])["area"]
    table = means.assign(share=means["area"] / places.transform("max")).pivot_table(
        "share", "method", "rate", ["mean", "size"]
    )
    return table["mean"].where(table["size"] == places.ngroups)
