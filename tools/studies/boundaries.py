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
        runs: Of searches: the columns of `UNIT`, `lr` and `failed`.
        step: Ratio of neighboring rates.

    Returns:
        The columns of `UNIT`, `log2_rate`, and `beyond`: whether the boundary lies beyond the ladder.
    """
    ladder = runs["lr"].min(), runs["lr"].max()
    rows = [(*unit, *_boundary(own, step, ladder)) for unit, own in runs.groupby(UNIT)]
    return pd.DataFrame(rows, columns=[*UNIT, "log2_rate", "beyond"])


def _boundary(runs: pd.DataFrame, step: float, ladder: tuple[float, float]) -> tuple[float, bool]:
    failed = runs["failed"].astype(bool)
    first = runs.loc[failed, "lr"].min()
    beyond = np.isnan(first) or bool(np.isclose(first, ladder[0]))
    edge = ladder[1] * step if np.isnan(first) else first
    return float(np.log2(edge) - np.log2(step) / 2), beyond


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
