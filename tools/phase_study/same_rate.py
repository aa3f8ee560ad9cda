"""VCPO beside the same updates with a constant step of the same mean, at the same learning rate and seed."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.intervals import t_interval

from .contrasts import MATCHED, REWARD_MARGIN, verdict
from .design import LAGS
from .tables import PLACE


def same_rate(runs: pd.DataFrame) -> pd.DataFrame:
    """Per task and lag: who survives where the other does not, and the difference in final reward where both survive.

    A run that failed lends the mean step of a dead run as well, whose ESS is near 1. Such pairs are only counted.

    Returns:
        Columns `pairs`, `both_survive`, `only_vcpo`, `only_matched`; `seeds` with a pair where both survive;
        `difference` in final reward there, VCPO minus its control, the mean over seeds of each seed's mean over rates,
        with its 95% interval `low` to `high` and its 90% interval `low90` to `high90`; `verdict`.
    """
    place = [name for name in (*PLACE, "rung") if name != "method"]
    pairs = runs[(runs["method"] == "vcpo") & runs["staleness"].isin(LAGS)].merge(
        runs[runs["method"] == MATCHED], on=place, suffixes=("_vcpo", "_matched")
    )
    return pd.DataFrame([_row(task, lag, group) for (task, lag), group in pairs.groupby(["task", "staleness"])])


def _row(task: object, lag: object, pairs: pd.DataFrame) -> dict[str, object]:
    ours, matched = pairs["failed_vcpo"].astype(bool), pairs["failed_matched"].astype(bool)
    both = pairs[~ours & ~matched]
    by_seed = (both["final_reward_vcpo"] - both["final_reward_matched"]).groupby(both["seed"]).mean()
    ends = (*t_interval(by_seed), *t_interval(by_seed, 0.90))
    row: dict[str, object] = {"task": task, "staleness": lag}
    row |= {"pairs": len(pairs), "both_survive": len(both)}
    row |= {"only_vcpo": int((~ours & matched).sum()), "only_matched": int((ours & ~matched).sum())}
    row |= {"seeds": len(by_seed), "difference": by_seed.mean()}
    row |= dict(zip(("low", "high", "low90", "high90"), ends, strict=True))
    return row | {"verdict": verdict(*ends, margin=REWARD_MARGIN, values=len(by_seed))}
