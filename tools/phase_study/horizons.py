"""How the largest surviving learning rate falls with the number of updates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .boundary import resampled, slopes
from .tables import EXPONENTS, HORIZON_LAG, HORIZONS, boundaries


def horizons(runs: pd.DataFrame) -> pd.DataFrame:
    """Exponent of b in the number of updates at lag 16, per task and method.

    Returns:
        Columns `task`, `method`, `seeds`, `exponent`, and its 95% interval `low` to `high` by resampling seeds: NaN
        with fewer than `boundary.LEAST_SEEDS` seeds; all NaN where the ladder ends first.
    """
    at_lag = runs[runs["staleness"] == HORIZON_LAG]
    found = pd.concat([boundaries(at_lag, each).assign(horizon=each) for each in HORIZONS])
    random = np.random.default_rng(0)
    rows = [
        {"task": task, "method": method, "seeds": group["seed"].nunique()} | _exponent(group, random)
        for (task, method), group in found.groupby(["task", "method"], sort=False)
    ]
    return pd.DataFrame(rows)


def _exponent(group: pd.DataFrame, random: np.random.Generator) -> dict[str, float]:
    unknown = {"exponent": np.nan, "low": np.nan, "high": np.nan}
    open_ends = group[["low", "high"]].abs().eq(np.inf).any(axis=1).groupby(group["horizon"]).mean() > 0.5
    if open_ends.sum() >= 2:
        return unknown
    weights = np.vstack([np.ones(len(group)), resampled(group["seed"].to_numpy(), random)])
    bounds = group["low"].to_numpy(float), group["high"].to_numpy(float)
    value, *others = -slopes(*bounds, np.log2(group["horizon"].to_numpy(float)), weights, -EXPONENTS)
    low, high = np.quantile(others, (0.025, 0.975)) if others else (np.nan, np.nan)
    return unknown | {"exponent": value, "low": low, "high": high}
