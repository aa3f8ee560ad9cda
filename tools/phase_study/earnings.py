"""What each method earns at each lag, at the rates that its search found to survive."""

from __future__ import annotations

import pandas as pd
from design import LADDER

from vcpo_bench.analysis.intervals import t_interval


def earnings(bounds: pd.DataFrame) -> pd.DataFrame:
    """Mean final reward over seeds, per task, method and lag.

    Args:
        bounds: Of `tables.boundaries`.

    Returns:
        Columns `task`, `method`, `staleness`, `seeds` (those with a surviving rate), `median_rate` that earned most,
        `reward` at that rate with its 95% t interval `low` to `high`, and `at_largest_rate`: the reward at the largest
        rate that survived, which need not be the one that earns most.
    """
    rows = []
    for (task, method, lag), group in bounds.groupby(["task", "method", "staleness"], sort=False):
        alive = group.dropna(subset="best_reward")
        row = {"task": task, "method": method, "staleness": lag, "seeds": len(alive)}
        if len(alive):
            low, high = t_interval(alive["best_reward"])
            row |= {"median_rate": LADDER[0] * 2 ** alive["best_rung"].median()}
            row |= {"reward": alive["best_reward"].mean(), "low": low, "high": high}
            row |= {"at_largest_rate": alive["reward"].mean()}
        rows.append(row)
    return pd.DataFrame(rows)
