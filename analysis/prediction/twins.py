"""Runs that are one run until shortly before a failure: with the same seed, nothing differs before the lags do.

Under `fifo` a run at lag 16 and one at lag 64 train on the same batches for 17 updates. Where that history already
leads to a failure, both record the same event. It is counted as one: twins are resampled together, and held out
together.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HISTORY = ("batch_reward", "grad_norm", "ess_ratio")
"""Recorded columns of the updates that are compared, bit by bit."""
_SAME = ["task", "regime", "method", "lr", "seed"]


def twin_groups(updates: pd.DataFrame, runs: pd.DataFrame, until: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number of the group of twins of every run [N]; a run without a twin is a group of its own.

    Two runs of one task, regime, method, learning rate and seed are twins if one of them failed and their first
    updates are the same, up to the smaller of their numbers `until`.

    Args:
        updates: Columns `key`, `step` and `HISTORY`, the rows of a run together and in order.
        runs: With `key`, `task`, `regime`, `method`, `lr` and `seed`, one row per run [N].
        until: Updates that have to be the same [N]; infinite: the run never failed.
    """
    rows = updates.groupby("key", sort=False).indices
    values = updates[list(HISTORY)].to_numpy(dtype=np.float64)
    group = np.arange(len(runs), dtype=np.int64)
    keys = runs["key"].to_numpy(dtype=object)
    for members in runs.groupby(_SAME, sort=False, dropna=False).indices.values():
        for one, other in combinations(map(int, members), 2):
            needed = min(until[one], until[other])
            if np.isfinite(needed) and _same(values[rows[keys[one]]], values[rows[keys[other]]], int(needed)):
                group[group == group[other]] = group[one]
    return group


def joined(number: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coarser numbering [N] in which runs agree that agree in either of two numberings [N]."""
    result = number.copy()
    for one in np.unique(other):
        together = np.unique(result[other == one])
        if together.size > 1:
            result[np.isin(result, together)] = together[0]
    return result


def _same(one: NDArray[np.float64], other: NDArray[np.float64], needed: int) -> bool:
    """Are so many first updates [S, C] there, recorded and the same?"""
    first, second = one[:needed], other[:needed]
    if len(first) < needed or len(second) < needed or not np.isfinite(first).any(axis=1).all():
        return False
    return bool(np.array_equal(first, second, equal_nan=True))
