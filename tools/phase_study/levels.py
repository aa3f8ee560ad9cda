"""The largest surviving learning rate of each method at each lag, with its interval over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .boundary import estimate
from .design import LADDER

_GRID = np.arange(-2.0, 11.01, 0.1)


def level_table(bounds: pd.DataFrame) -> pd.DataFrame:
    """Mean of log2 b over seeds, per task, method and lag, as a learning rate.

    Args:
        bounds: Of `tables.boundaries`.

    Returns:
        Columns `task`, `method`, `staleness`, `seeds`, `at_top` and `at_bottom` (units whose boundary lies beyond the
        ladder), `largest_rate` with `low` and `high`: infinite or NaN where the ladder says no more.
    """
    rows = []
    for (task, method, lag), group in bounds.groupby(["task", "method", "staleness"], sort=False):
        low, high = group["low"].to_numpy(float), group["high"].to_numpy(float)
        row = {"task": task, "method": method, "staleness": lag, "seeds": len(group)}
        row |= {"at_top": int(np.isinf(high).sum()), "at_bottom": int(np.isinf(low).sum())}
        if row["at_top"] * 2 > len(group):
            row |= {"largest_rate": np.inf, "low": LADDER[-1], "high": np.inf}
        elif row["at_bottom"] * 2 > len(group):
            row |= {"largest_rate": np.nan, "low": np.nan, "high": LADDER[0]}
        else:
            found = estimate(low, high, np.ones(len(group)), _GRID)
            rates = (LADDER[0] * 2.0**rung for rung in (found.value, found.low, found.high))
            row |= dict(zip(("largest_rate", "low", "high"), rates, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)
