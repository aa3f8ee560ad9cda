"""Paired comparisons at each method's own boundary: the learning rate that it tolerates, and what it earns there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import t_interval

from .boundary import estimate
from .design import LAGS, Unit
from .tables import PLACE, outcomes

MATCHED, SHUFFLED = "vcpo(ess=off)+lr-matched", "vcpo(ess=off)+lr-shuffled"
OPOB_ALONE = "vcpo(ess=off)"
RATE_MARGIN = 0.5
"""In rungs: a factor of 1.41 in the learning rate."""
REWARD_MARGIN = 0.05
LEAST_PAIRS = 4
TOO_FEW = "too few pairs"
BOTH_AT_END = "both at an end of the ladder"
_DENTS = ("stall", "transient dip")
_EVENTS = {"vcpo": "event_vcpo", "rival": "event_other"}
_ENDS = ("low", "high", "low90", "high90")
_SHIFTS = np.round(np.arange(-6.0, 6.0001, 0.1), 1)


def rates(runs: pd.DataFrame, bounds: pd.DataFrame, rivals: Sequence[str] = (MATCHED,)) -> pd.DataFrame:
    """Difference in log2 b, in rungs, between VCPO and controls of its step, per task and lag, paired by seed.

    Args:
        runs: Of `tables.run_table`.
        bounds: Of `tables.boundaries`.
        rivals: The controls, which borrow from VCPO's run of the same seed and rate.

    Returns:
        Columns `difference` (NaN where it lies beyond what the ladder can tell) with its 95% interval `low` to `high`
        and its 90% interval `low90` to `high90`; `reach90`, how far the 90% interval would reach if the two lay between
        the same rungs in every seed; `lender_failed`, in how many seeds the run that lent its steps to the control's
        first failing run had failed itself.
    """
    return pd.DataFrame(
        [_rate(runs, rival, *place, pairs) for rival in rivals for place, pairs in _pairs(bounds, rival)]
    )


def _rate(runs: pd.DataFrame, rival: str, task: str, lag: int, pairs: pd.DataFrame) -> dict[str, object]:
    low = (pairs["low_vcpo"] - pairs["high_other"]).to_numpy(float)
    high = (pairs["high_vcpo"] - pairs["low_other"]).to_numpy(float)
    said = np.isfinite(low) | np.isfinite(high)
    seeds = int(said.sum())
    row: dict[str, object] = {"task": task, "staleness": lag, "against": rival, "seeds": seeds}
    row |= {"lender_failed": _lenders_failed(runs, pairs)}
    if not seeds:
        return row | {"verdict": BOTH_AT_END}
    value, *ends = estimate(low[said], high[said], np.ones(seeds), _SHIFTS)
    row |= {"difference": value} | dict(zip(_ENDS, ends, strict=True)) | {"reach90": _reach(seeds)}
    return row | {"verdict": verdict(*ends, margin=RATE_MARGIN, values=seeds)}


def rewards(bounds: pd.DataFrame, rivals: Sequence[str] = (OPOB_ALONE, "tis")) -> pd.DataFrame:
    """Difference in final reward, each at its largest surviving rate, per task and lag, paired by seed.

    Args:
        bounds: Of `tables.boundaries`.
        rivals: What VCPO is compared with.

    Returns:
        Columns `vcpo`, `rival`, `difference` with its 95% interval `low` to `high` and its 90% interval `low90` to
        `high90`; `dented_vcpo` and `dented_rival`, how many of the surviving runs stalled or dipped;
        `difference_at_best_rates`.
    """
    rows = []
    for rival in rivals:
        for (task, lag), pairs in _pairs(bounds, rival):
            pairs = pairs.dropna(subset=["reward_vcpo", "reward_other"])
            difference = pairs["reward_vcpo"] - pairs["reward_other"]
            ends = (*t_interval(difference), *t_interval(difference, 0.90))
            row = {"task": task, "staleness": lag, "against": rival, "seeds": len(difference)}
            row |= {"vcpo": pairs["reward_vcpo"].mean(), "rival": pairs["reward_other"].mean()}
            row |= {"difference": difference.mean()} | dict(zip(_ENDS, ends, strict=True))
            row |= {"verdict": verdict(*ends, margin=REWARD_MARGIN, values=len(difference))}
            row |= {f"dented_{name}": int(pairs[column].isin(_DENTS).sum()) for name, column in _EVENTS.items()}
            best = (pairs["best_reward_vcpo"] - pairs["best_reward_other"]).mean()
            rows.append(row | {"difference_at_best_rates": best})
    return pd.DataFrame(rows)


def verdict(low: float, high: float, low90: float, high90: float, *, margin: float, values: int) -> str:
    """What a difference with its 95% and 90% intervals says: equivalence within the margin goes first.

    Args:
        low: Lower end of the difference's 95% interval.
        high: Upper end.
        low90: Lower end of its 90% interval.
        high90: Upper end.
        margin: Of equivalence.
        values: How many independent values it is the mean of; with fewer than `LEAST_PAIRS` there is no verdict.
    """
    if values < LEAST_PAIRS:
        return TOO_FEW
    if -margin <= low90 and high90 <= margin:
        return "equivalent"
    if low > 0 or high < 0:
        return "more" if low > 0 else "less"
    return "undecided"


@cache
def _reach(seeds: int) -> float:
    equal = np.ones(seeds)
    return estimate(-equal, equal, equal, _SHIFTS).high90


def _lenders_failed(runs: pd.DataFrame, pairs: pd.DataFrame) -> int:
    """In how many seeds VCPO failed at the rung where its control first fails."""
    lenders = outcomes(runs[runs["method"] == "vcpo"])
    rows = pairs[["seed", "task", "staleness", "high_other"]].to_dict("records")
    return sum(
        lenders[Unit(row["seed"], row["task"], "vcpo", row["staleness"])].get(row["high_other"], False) for row in rows
    )


def _pairs(bounds: pd.DataFrame, rival: str) -> list[tuple[tuple[str, int], pd.DataFrame]]:
    """Per task and lag: the units of VCPO beside those of a rival with the same seed."""
    place = [name for name in PLACE if name != "method"]
    ours = bounds[(bounds["method"] == "vcpo") & bounds["staleness"].isin(LAGS)]
    both = ours.merge(bounds[bounds["method"] == rival], on=place, suffixes=("_vcpo", "_other"))
    places = both[["task", "staleness"]].drop_duplicates().to_dict("records")
    return [
        ((at["task"], at["staleness"]), both[(both["task"] == at["task"]) & (both["staleness"] == at["staleness"])])
        for at in places
    ]
