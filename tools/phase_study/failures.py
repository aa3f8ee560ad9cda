"""When failing runs fall, and at which lag."""

from __future__ import annotations

import pandas as pd

EVALUATED_EVERY = 10
"""Updates; a fall that an evaluation finds may have begun right after the one before."""
_TWIN = ["task", "method", "seed", "rung", "onset"]


def failures(runs: pd.DataFrame) -> pd.DataFrame:
    """Failing runs by task, method and lag.

    Returns:
        Columns `failed`, `median_onset`; `median_lag`, of the lags that had been reached by then; `before_the_lag`, how
        many were down before the asked lag was reached; `perhaps_before`, how many more may have begun to fall before;
        `twins`, how many fell at the same evaluation as the run of the same seed and learning rate at another lag,
        while both still had the same lag; `rebounds`.
    """
    failed = runs[runs["failed"].astype(bool) & (runs["staleness"] > 0)].copy()
    failed["reached"] = failed[["staleness", "onset"]].min(axis=1)
    failed["before_the_lag"] = failed["onset"] <= failed["staleness"]
    began = failed["onset"] - EVALUATED_EVERY
    failed["perhaps_before"] = ~failed["before_the_lag"] & (began < failed["staleness"])
    shortest = failed.groupby(_TWIN)["staleness"].transform("min")
    alike = failed.groupby(_TWIN)["staleness"].transform("size") > 1
    failed["twins"] = alike & (began < shortest)
    failed["rebounds"] = failed["event"] == "collapse with rebound"
    counts = ["before_the_lag", "perhaps_before", "twins", "rebounds"]
    grouped = failed.groupby(["task", "method", "staleness"], sort=False)
    table = grouped.agg(failed=("failed", "size"), median_onset=("onset", "median"), median_lag=("reached", "median"))
    return table.join(grouped[counts].sum()).reset_index()
