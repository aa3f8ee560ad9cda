"""From the curves of all runs to one row per run, and to the verdict on every method and lag."""

from __future__ import annotations

import numpy as np
import pandas as pd
from settings import LAGS, METHODS, UPDATES

from vcpo_bench.analysis.intervals import t_interval

MARGIN = 0.05
"""Largest difference of success that counts as none; registered."""
WEIGHTS = 1e-4
"""Largest relative difference of the weights, over updates 1 to 20, that counts as agreement; registered."""
ARM = ["side", "method", "lag", "seed"]


def run_table(curves: pd.DataFrame) -> pd.DataFrame:
    """One row per run.

    Args:
        curves: `side`, `method`, `lag`, `seed`, `update` (0: the start; -1: the time of the whole run), and what was
            measured.
    """
    return pd.DataFrame([_run_row(own) for _, own in curves.groupby(ARM, sort=False)])


def _run_row(curve: pd.DataFrame) -> dict[str, object]:
    late = curve[curve["update"] > UPDATES // 2]
    updates = curve[curve["update"] > 0].sort_values("update")
    lag = int(curve["lag"].iloc[0])
    wanted = np.minimum(updates["update"] - 1, lag)
    return {
        **{str(name): value for name, value in curve[ARM].iloc[0].items()},
        "updates": len(updates),
        "success_start": float(curve.loc[curve["update"] == 0, "success"].iloc[0]),
        "success": float(late["success"].mean()),
        "success_end": float(curve.loc[curve["update"] == UPDATES, "success"].iloc[0]),
        "ess_ratio": float(late["ess_ratio"].mean()),
        "step_scale": float(late["step_scale"].mean()),
        "lag_realized": float(updates["lag_mean"].iloc[-1]),
        "updates_with_other_lag": int(((updates["lag_mean"] != wanted) | (updates["lag_max"] != wanted)).sum()),
        "seconds": float(curve["seconds"].max()),
    }


def agreement_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per method and lag: both means, the difference TRL - ours paired by seed, and the verdict."""
    rows = []
    for method in METHODS:
        for lag in LAGS:
            own = runs[(runs["method"] == method) & (runs["lag"] == lag)]
            wide = own.pivot(index="seed", columns="side", values="success").dropna()
            difference = wide["trl"] - wide["ours"]
            low, high = t_interval(difference, 0.90)
            rows.append(
                {
                    "method": method,
                    "lag": lag,
                    "seeds": len(wide),
                    "ours": wide["ours"].mean(),
                    "trl": wide["trl"].mean(),
                    "difference": difference.mean(),
                    "sd": difference.std(),
                    "low90": low,
                    "high90": high,
                    "verdict": verdict(low, high, *t_interval(difference, 0.95)),
                    "ess_ours": _mean(own, "ours", "ess_ratio"),
                    "ess_trl": _mean(own, "trl", "ess_ratio"),
                    "scale_ours": _mean(own, "ours", "step_scale"),
                    "scale_trl": _mean(own, "trl", "step_scale"),
                }
            )
    return pd.DataFrame(rows)


def exact_table(updates: pd.DataFrame) -> pd.DataFrame:
    """One row per method and lag: the largest relative difference of the weights by stretch of updates.

    Args:
        updates: `method`, `lag`, `update`, `relative`, `ess_difference`.
    """
    stretches = {"1-19": (1, 19), "20": (20, 20), "21-40": (21, 40)}
    rows = []
    for (method, lag), own in updates.groupby(["method", "lag"], sort=False):
        within = {name: own.loc[own["update"].between(*ends), "relative"].max() for name, ends in stretches.items()}
        registered = own.loc[own["update"] <= 20, "relative"].max()
        ess = own.loc[own["update"] <= 20, "ess_difference"].abs().max()
        rows.append({"method": method, "lag": lag, **within, "agrees": registered <= WEIGHTS, "ess": ess})
    return pd.DataFrame(rows)


def verdict(low90: float, high90: float, low95: float, high95: float) -> str:
    """As registered: `equivalent`, else `different`, else `undecided`."""
    if low90 > -MARGIN and high90 < MARGIN:
        return "equivalent"
    return "different" if low95 > 0 or high95 < 0 else "undecided"


def _mean(runs: pd.DataFrame, side: str, name: str) -> float:
    return float(runs.loc[runs["side"] == side, name].mean())
