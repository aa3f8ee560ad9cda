"""The largest stable learning rate of each method, and how it falls with lag: is it about 1/lag?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.tolerance import EQUAL
from vcpo_bench.analysis.wording import learning_rate

Array = NDArray[np.float64]

TOLERATED = 3
"""A learning rate is stable when fewer than one in this many of its seeds failed."""

_EXPONENTS = np.linspace(-1.0, 3.0, 81)
_INTERCEPT = ["task", "regime", "method"]
_RIDGE, _INTERCEPT_RIDGE = 0.02, 1e-5
_NEWTON_STEPS, _LONGEST_STEP = 60, 3.0


def stable_rates(table: pd.DataFrame) -> pd.DataFrame:
    """The largest stable learning rate per task, regime, method and lag.

    Args:
        table: Cells with `task`, `regime`, `method`, `staleness`, `lr`, `failed`, `event`; cells that are
            undecided (the collapse rule does not apply, or an alarm stopped them first) are left out.

    Returns:
        Columns `task`, `regime`, `method`, `staleness`, `stable_rate` (the largest learning rate up to which all are
        stable; NaN: none is), `next_rate` (the smallest unstable one; NaN: none is), `reading` (both in words),
        `failed` and `total` at `stable_rate` (missing where none is stable), and `failed_high`, the upper end of the
        Wilson interval of the failure rate there.
    """
    judged = table[~table["event"].isin(UNDECIDED) & (table["staleness"] > 0)]
    rows = []
    place = ["task", "regime", "method", "staleness"]
    for name, cells in judged.groupby(place, sort=False):
        per_rate = cells.groupby("lr")["collapsed"].agg(["sum", "size"]).sort_index()
        unstable = (TOLERATED * per_rate["sum"] >= per_rate["size"]).to_numpy()
        first = int(np.argmax(unstable)) if unstable.any() else len(unstable)
        rates = per_rate.index.to_numpy()
        stable, following = (rates[first - 1] if first else np.nan), (rates[first] if first < len(rates) else np.nan)
        failed, total = map(int, per_rate.iloc[first - 1]) if first else (None, 0)
        row = dict(zip(place, name, strict=True))
        row |= {"stable_rate": stable, "next_rate": following, "reading": _reading(stable, following)}
        row["collapsed_high"] = np.nan if failed is None else wilson(failed, total)[1]
        rows.append(row | {"collapsed": failed, "total": total or None})
    columns = [*place, "stable_rate", "next_rate", "reading", "collapsed", "total", "collapsed_high"]
    return pd.DataFrame(rows, columns=columns).astype({"collapsed": "Int64", "total": "Int64"})


def frontier(table: pd.DataFrame) -> pd.DataFrame:
    """How the stability limit falls with lag: exponent a of `lr_max ~ lag^-a`, one row per method and one for all.

    Failure is modeled as `P = logistic(c_task,regime,method + b (log lr + a log lag))`, so that the learning rate at
    which half of the runs fail falls as `lag^-a`. The lag is the requested one. Seeds of a configuration tend to share
    their fate: n of them count as n / (1 + (n - 1) r) runs (Kish's design effect). r is the share of the expected
    variance of fates that does not show among seeds of a configuration: 1 where all or none of them fail. The 95%
    interval holds every a whose profile log-likelihood, over slopes b of 0 or more, is within the F limit of the best.
    Where a coarse grid of learning rates separates failures perfectly for a whole range of exponents, the interval
    includes all of that range. A weak ridge penalty keeps b finite. In the row `method == "(all)"` every method has its
    own intercept and all share one exponent.

    Args:
        table: As of `stable_rates`, with `onset`.

    Returns:
        Columns `method`, `cells`, `failed`, `early` (failures found before the requested lag was reached, which say
        nothing about it), `exponent`, `low`, `high` (infinite where the interval reaches the end of the range
        searched, -1 to 3) and `reason`: why the exponent is NaN. It is NaN where fewer than two lags or learning rates
        were run, fewer than 5 runs failed or 5 survived, there are no more configurations than coefficients, or
        failures do not become more likely at larger learning rates.
    """
    judged = table[~table["event"].isin(UNDECIDED) & (table["staleness"] > 0)]
    judged = judged.assign(early=judged["collapsed"].astype(bool) & (judged["onset"] < judged["staleness"]))
    rows = [{"method": name} | _fit(cells) for name, cells in judged.groupby("method", sort=False)]
    if len(rows) > 1:
        rows.append({"method": "(all)"} | _fit(judged))
    return pd.DataFrame(rows, columns=["method", "cells", "collapsed", "early", "exponent", "low", "high", "reason"])


def _fit(cells: pd.DataFrame) -> dict[str, Any]:
    failed = cells["collapsed"].to_numpy(dtype=np.float64)
    facts: dict[str, Any] = {"cells": len(cells), "collapsed": int(failed.sum()), "early": int(cells["early"].sum())}
    nothing = {"exponent": np.nan, "low": np.nan, "high": np.nan}
    for name, what in (("staleness", "lag"), ("lr", "learning rate")):
        if cells[name].nunique() < 2:
            return facts | nothing | {"reason": f"only one {what}"}
    if min(failed.sum(), (1 - failed).sum()) < 5:
        return facts | nothing | {"reason": "fewer than 5 collapsed or 5 surviving runs"}
    counted = _counted(cells)
    freedom = len(counted) - len(counted[_INTERCEPT].drop_duplicates()) - 2
    if freedom < 1:
        return facts | nothing | {"reason": "too few configurations"}
    design = _design(counted)
    alone = _profile(design, counted["share"].to_numpy(), np.ones(len(counted)))
    runs = _effective_runs(counted, alone.score[int(alone.likelihood.argmax())])
    slope, likelihood, _ = _profile(design, counted["share"].to_numpy(), runs)
    best = int(likelihood.argmax())
    if slope[best] <= 0.1:
        return facts | nothing | {"reason": "collapses do not become more likely at larger learning rates"}
    heights = np.where(slope > 0, likelihood, _without_slope(counted, runs))
    inside = np.flatnonzero(heights >= likelihood[best] - scipy.special.fdtri(1, freedom, 0.95) / 2 - EQUAL)
    low = -np.inf if inside[0] == 0 else _EXPONENTS[inside[0]]
    high = np.inf if inside[-1] == len(_EXPONENTS) - 1 else _EXPONENTS[inside[-1]]
    return facts | {"exponent": float(_EXPONENTS[best]), "low": low, "high": high, "reason": ""}


def _without_slope(counted: pd.DataFrame, runs: Array) -> float:
    """Log-likelihood where neither learning rate nor lag matters."""
    groups = [counted[name] for name in _INTERCEPT]
    share, weight = counted["share"], pd.Series(runs, index=counted.index)
    mean = (share * weight).groupby(groups).transform("sum") / weight.groupby(groups).transform("sum")
    return float((weight * (scipy.special.xlogy(share, mean) + scipy.special.xlogy(1 - share, 1 - mean))).sum())


def _effective_runs(counted: pd.DataFrame, score: Array) -> Array:
    """As how many independent runs the seeds of each configuration count, given its predicted log odds [N]."""
    share, size = counted["share"].to_numpy(), counted["size"].to_numpy()
    several = size > 1
    p = scipy.special.expit(score[several])
    expected = float((size[several] * p * (1 - p)).sum())
    within = float((size**2 * share * (1 - share))[several] @ (1 / (size[several] - 1)))
    shared = float(np.clip(1 - within / expected, 0, 1)) if expected > 0 else 1.0
    return np.asarray(size / (1 + (size - 1) * shared))


def _counted(cells: pd.DataFrame) -> pd.DataFrame:
    """Configurations, whose runs differ in their seed only: the `share` of the runs that failed, and their `size`."""
    same = cells.groupby([*_INTERCEPT, "lr", "staleness"], sort=False)["collapsed"]
    return same.agg(share="mean", size="size").astype("float64").reset_index()


def _design(counted: pd.DataFrame) -> Array:
    """For every exponent searched: an intercept per task, regime and method, then `log lr + a log lag`: [A, N, D]."""
    groups = pd.get_dummies(counted[_INTERCEPT].agg("\n".join, axis=1)).to_numpy(dtype=np.float64)
    log_lr, log_lag = np.log(counted[["lr", "staleness"]].to_numpy(dtype=np.float64)).T
    drive = log_lr + _EXPONENTS[:, None] * log_lag
    drive -= drive.mean(axis=1, keepdims=True)
    stacked = np.broadcast_to(groups, (len(_EXPONENTS), *groups.shape))
    return np.concatenate([stacked, drive[:, :, None]], axis=2)


class _Profile(NamedTuple):
    """Slope [A], penalized log-likelihood [A] and log odds of failure [A, N] at each exponent."""

    slope: Array
    likelihood: Array
    score: Array


def _profile(design: Array, share: Array, runs: Array) -> _Profile:
    """A ridge logistic regression (Newton's method) for each design.

    Args:
        design: Of A exponents, N configurations and D coefficients, [A, N, D].
        share: Of the runs of each configuration that failed [N].
        runs: As how many it counts [N].
    """
    beta = np.zeros((design.shape[0], design.shape[2], 1))
    ridge = np.full((design.shape[2], 1), _INTERCEPT_RIDGE)
    ridge[-1] = _RIDGE
    transposed = design.transpose(0, 2, 1)
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        gradient = transposed @ (runs[:, None] * (share[:, None] - p)) - ridge * beta
        hessian = transposed @ (runs[:, None] * p * (1 - p) * design) + np.diag(ridge[:, 0])
        step = np.linalg.solve(hessian, gradient)
        beta += step * np.minimum(1.0, _LONGEST_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-9))
    score = (design @ beta)[:, :, 0]
    likelihood = (runs * (share * score - np.logaddexp(0.0, score))).sum(axis=1)
    return _Profile(beta[:, -1, 0], likelihood - (ridge * beta**2).sum(axis=(1, 2)) / 2, score)


def _reading(stable: float, following: float) -> str:
    if np.isnan(stable):
        return f"below {learning_rate(following)}, the smallest tried"
    return (
        f"at least {learning_rate(stable)}"
        if np.isnan(following)
        else f"between {learning_rate(stable)} and {learning_rate(following)}"
    )
