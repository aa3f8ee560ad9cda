"""The paired comparisons of the phase study: does VCPO bear a larger rate, and does it end higher?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from boundary import estimate, slopes
from design import LAGS
from tables import EXPONENTS, HORIZON_LAG, HORIZONS, PLACE, boundaries

from vcpo_bench.analysis.intervals import t_interval

MATCHED, OPOB_ALONE = "vcpo(ess=off)+lr-matched", "vcpo(ess=off)"
RATE_MARGIN = 0.5
"""In rungs: a factor of 1.41 in the learning rate."""
REWARD_MARGIN = 0.05
_SHIFTS = np.round(np.arange(-6.0, 6.0001, 0.1), 1)
_RESAMPLES = 200


def rates(bounds: pd.DataFrame) -> pd.DataFrame:
    """Difference in log2 b, in rungs, between VCPO and its own mean step size, per task and lag, paired by seed."""
    rows = []
    for (task, lag), pairs in _pairs(bounds, MATCHED):
        low = (pairs["low_vcpo"] - pairs["high_other"]).to_numpy(float)
        high = (pairs["high_vcpo"] - pairs["low_other"]).to_numpy(float)
        row = {"task": task, "staleness": lag, "against": MATCHED, "seeds": len(pairs)}
        if not (np.isfinite(low) | np.isfinite(high)).any():
            rows.append(row | {"verdict": "both at an end of the ladder"})
            continue
        found = estimate(low, high, np.ones(len(pairs)), _SHIFTS)
        row |= {"difference": found.value, "low": found.low, "high": found.high}
        rows.append(row | {"verdict": _verdict(*found, margin=RATE_MARGIN)})
    return pd.DataFrame(rows)


def rewards(bounds: pd.DataFrame) -> pd.DataFrame:
    """Difference in final reward, each at its largest surviving rate, per task and lag, paired by seed."""
    rows = []
    for rival in (OPOB_ALONE, "tis"):
        for (task, lag), pairs in _pairs(bounds, rival):
            difference = (pairs["reward_vcpo"] - pairs["reward_other"]).dropna()
            ends = (*t_interval(difference), *t_interval(difference, 0.90))
            row = {"task": task, "staleness": lag, "against": rival, "seeds": len(difference)}
            row |= {"vcpo": pairs["reward_vcpo"].mean(), "rival": pairs["reward_other"].mean()}
            row |= {"difference": difference.mean(), "low": ends[0], "high": ends[1]}
            row |= {"verdict": _verdict(float(difference.mean()), *ends, margin=REWARD_MARGIN)}
            best = (pairs["best_reward_vcpo"] - pairs["best_reward_other"]).mean()
            rows.append(row | {"difference_at_best_rates": best})
    return pd.DataFrame(rows)


def horizons(runs: pd.DataFrame) -> pd.DataFrame:
    """Exponent of b in the number of updates at lag 16, per task and method; 95% interval by resampling seeds."""
    at_lag = runs[runs["staleness"] == HORIZON_LAG]
    found = pd.concat([boundaries(at_lag, each).assign(horizon=each) for each in HORIZONS])
    random, rows = np.random.default_rng(0), []
    for (task, method), group in found.groupby(["task", "method"], sort=False):
        row = {"task": task, "method": method, "seeds": group["seed"].nunique()}
        open_ends = group[["low", "high"]].abs().eq(np.inf).any(axis=1).groupby(group["horizon"]).mean() > 0.5
        if open_ends.sum() >= 2:
            rows.append(row | {"exponent": np.nan, "low": np.nan, "high": np.nan})
            continue
        counts = random.multinomial(row["seeds"], np.full(row["seeds"], 1 / row["seeds"]), size=_RESAMPLES)
        drawn = np.vstack([np.ones(len(group)), counts[:, group["seed"].rank(method="dense").astype(int) - 1]]).astype(
            float
        )
        bounds = group["low"].to_numpy(float), group["high"].to_numpy(float)
        value, *others = -slopes(*bounds, np.log2(group["horizon"].to_numpy(float)), drawn, -EXPONENTS)
        low, high = np.quantile(others, (0.025, 0.975))
        rows.append(row | {"exponent": value, "low": low, "high": high})
    return pd.DataFrame(rows)


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


def _verdict(value: float, low: float, high: float, low90: float, high90: float, *, margin: float) -> str:
    if -margin <= low90 and high90 <= margin:
        return "equivalent"
    if low > 0 or high < 0:
        return "more" if value > 0 else "less"
    return "undecided"
