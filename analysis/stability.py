"""The largest learning rate a method survives, and how it falls with lag: is it about 1/lag?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.findings import rate
from vcpo_bench.analysis.intervals import wilson

Array = NDArray[np.float64]

TOLERATED = 1 / 3
"""A rate is stable when fewer than this share of its seeds failed."""

_RIDGE = 0.1
_REPLICATIONS = 500
_NEWTON_STEPS = 25


def stable_rates(table: pd.DataFrame) -> pd.DataFrame:
    """The largest stable rate per task, method and lag.

    Args:
        table: cells with ``task``, ``method``, ``staleness``, ``lr``, ``failed``, ``event``; cells to which the
            collapse rule does not apply are left out.

    Returns:
        Columns ``task``, ``method``, ``staleness``, ``stable_rate`` (the largest rate up to which every rate is
        stable; NaN: none is), ``next_rate`` (the smallest unstable one; NaN: none is), ``reading`` in words,
        ``failed`` and ``total`` at the stable rate and ``failed_high``, the upper end of the Wilson interval of its
        failure rate.
    """
    judged = table[(table["event"] != "not applicable") & (table["staleness"] > 0)]
    rows = []
    for name, cells in judged.groupby(["task", "method", "staleness"], sort=False):
        per_rate = cells.groupby("lr")["failed"].agg(["sum", "size"]).sort_index()
        unstable = (per_rate["sum"] / per_rate["size"] >= TOLERATED).to_numpy()
        first = int(np.argmax(unstable)) if unstable.any() else len(unstable)
        rates = per_rate.index.to_numpy()
        stable, following = (rates[first - 1] if first else np.nan), (rates[first] if first < len(rates) else np.nan)
        failed, total = per_rate.iloc[first - 1].astype(int) if first else (0, 0)
        row = dict(zip(("task", "method", "staleness"), name, strict=True))
        row |= {"stable_rate": stable, "next_rate": following, "reading": _reading(stable, following)}
        rows.append(row | {"failed": failed, "total": total, "failed_high": wilson(failed, total)[1]})
    columns = ["task", "method", "staleness", "stable_rate", "next_rate", "reading", "failed", "total", "failed_high"]
    return pd.DataFrame(rows, columns=columns)


def frontier(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """How the stability limit falls with lag: exponent a of ``lr_max ~ lag^-a``, one row per method and one for all.

    Failure is modelled as ``P = logistic(c_task + b log lr + g log lag)``; on the line where P is one half, the rate
    falls as ``lag^-(g/b)``, so a = g/b. A weak ridge keeps separated data finite. The 95% interval resamples seeds.
    ``a`` is NaN with the ``reason`` where fewer than two lags or rates were run, or where not both outcomes occurred
    often enough (5 each). The row ``method == "(all)"`` gives every method an intercept of its own and one common
    exponent.

    Returns:
        Columns ``method``, ``cells``, ``failed``, ``exponent``, ``low``, ``high``, ``reason``.
    """
    judged = table[(table["event"] != "not applicable") & (table["staleness"] > 0)]
    rows = [{"method": name} | _fit(cells, seed) for name, cells in judged.groupby("method", sort=False)]
    if len(rows) > 1:
        rows.append({"method": "(all)"} | _fit(judged, seed))
    return pd.DataFrame(rows, columns=["method", "cells", "failed", "exponent", "low", "high", "reason"])


def _fit(cells: pd.DataFrame, seed: int) -> dict[str, object]:
    failed = cells["failed"].to_numpy(dtype=np.float64)
    facts = {"cells": len(cells), "failed": int(failed.sum())}
    nothing = {"exponent": np.nan, "low": np.nan, "high": np.nan}
    if cells["staleness"].nunique() < 2 or cells["lr"].nunique() < 2:
        return facts | nothing | {"reason": "fewer than two lags or two rates"}
    if min(failed.sum(), (1 - failed).sum()) < 5:
        return facts | nothing | {"reason": "fewer than 5 failed or 5 surviving runs"}
    design = _design(cells)
    seeds, member = np.unique(cells["seed"].to_numpy(), return_inverse=True)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=_REPLICATIONS)
    weights = np.concatenate([np.ones((1, len(failed))), drawn[:, member].astype(np.float64)])
    fitted = _logistic(design, failed, weights)
    exponents = fitted[:, -1] / np.where(fitted[:, -2] > 1e-3, fitted[:, -2], np.nan)
    if np.isnan(exponents[0]):
        return facts | nothing | {"reason": "failures do not become more likely with the rate"}
    low, high = np.nanquantile(exponents[1:], [0.025, 0.975]) if len(seeds) > 1 else (np.nan, np.nan)
    return facts | {"exponent": exponents[0], "low": low, "high": high, "reason": ""}


def _design(cells: pd.DataFrame) -> Array:
    """Intercepts per task and method, then centred log lr and log lag: [N, D]."""
    groups = pd.get_dummies(cells["task"] + "\n" + cells["method"]).to_numpy(dtype=np.float64)
    slopes = np.log(cells[["lr", "staleness"]].to_numpy(dtype=np.float64))
    return np.concatenate([groups, slopes - slopes.mean(axis=0)], axis=1)


def _logistic(design: Array, outcome: Array, weights: Array) -> Array:
    """Ridge logistic regression by Newton's method for [R] sets of case weights [R, N] at once: [R, D]."""
    beta = np.zeros((len(weights), design.shape[1]))
    ridge = _RIDGE * np.eye(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(beta @ design.T, -30, 30)))
        gradient = (weights * (outcome - p)) @ design - _RIDGE * beta
        hessian = np.einsum("rn,nd,ne->rde", weights * p * (1 - p), design, design, optimize=True) + ridge
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        beta += np.clip(step, -3, 3)
    return beta


def _reading(stable: float, following: float) -> str:
    if np.isnan(stable):
        return f"below {rate(following)}, the smallest tried"
    return f"at least {rate(stable)}" if np.isnan(following) else f"between {rate(stable)} and {rate(following)}"
