"""Importance weights from the table of updates: how much ESS is left, what a cap restores, what KL already says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnostics.correlations import correlations
from vcpo_bench.analysis.diagnostics.ess import expected_ess, gaussian_ess, kl_ess
from vcpo_bench.analysis.diagnostics.seed_groups import named, with_group
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import beginnings
from vcpo_bench.analysis.tolerance import EQUAL

Array = NDArray[np.float64]

_REPLICATIONS = 1000
_RAW = ("ess_ratio", "ess_ratio_used", "token_ess_ratio", "log_weight_max", "log_weight_var")
_WEIGHTS = (*_RAW, "length_mean", "kl_mu_theta_k1")
LOW_ESS = 0.1
"""Updates below this ESS ratio count as starved."""


def ess_table(results: Results) -> pd.DataFrame:
    """One row per group of seeds, over all their updates.

    Columns: the group; `updates`; `n` (trajectories per update); `ess` and `ess_used` (medians of the ratio
    before and after the method's own cap; NaN: it applies no weight), `token_ess`; `ess_q05`; `starved` (share
    of updates below `LOW_ESS`); `log_weight_max`; `variance` (median, nats^2); `limit`
    (`exp(-variance)`: ESS ratio of infinitely many such Gaussian log-weights) and `finite_batch` (what n of them
    show), the excess being the bias of a finite batch; `second_moment` of the sequence log-ratio (nats^2, M2PO's
    quantity at sequence level, taking the mean log-weight as `-length x k1`).
    """
    steps = with_group(results, *_WEIGHTS)
    steps = steps.assign(
        starved=(steps["ess_ratio"] < LOW_ESS - EQUAL).where(steps["ess_ratio"].notna()).astype("float64"),
        second_moment=steps["log_weight_var"] + (steps["length_mean"] * steps["kl_mu_theta_k1"]) ** 2,
    )
    groups = steps.groupby("group", sort=False)
    table = pd.DataFrame(
        {
            "updates": groups.size(),
            "n": groups["n"].first(),
            "ess": groups["ess_ratio"].median(),
            "ess_used": groups["ess_ratio_used"].median(),
            "token_ess": groups["token_ess_ratio"].median(),
            "ess_q05": groups["ess_ratio"].quantile(0.05),
            "starved": groups["starved"].mean(),
            "log_weight_max": groups["log_weight_max"].median(),
            "variance": groups["log_weight_var"].median(),
            "second_moment": groups["second_moment"].median(),
        }
    ).reset_index()
    table = named(table, results)
    table["limit"] = gaussian_ess(table["variance"])
    table["finite_batch"] = _expected(table["variance"].to_numpy(), table["n"].to_numpy())
    return table


class Pairs(NamedTuple):
    """Updates with a measured and a predicted ESS; those of a cell stand together.

    Attributes:
        table: Columns `group` (which `seed_groups.named` spells out), `ess_ratio`, `predicted`, `predicted_batch`.
        begins: Row of `table` at which each cell begins.
        x: Log of the ESS that is predicted for the batch.
        y: Log of the measured ESS.
    """

    table: pd.DataFrame
    begins: NDArray[np.int64]
    x: Array
    y: Array


def ess_pairs(results: Results) -> Pairs:
    """Every update with a measured and a predicted ESS; the first of a run is on policy at every lag and says nothing.

    It serves both `kl_table` and `kl_explained_table`.
    """
    steps = with_group(results, "ess_ratio", "length_mean", "kl_mu_theta_k3")
    variance = 2 * steps["length_mean"] * steps["kl_mu_theta_k3"]
    predicted = kl_ess(steps["length_mean"], steps["kl_mu_theta_k3"])
    batch = _expected(variance.to_numpy(dtype=np.float64), steps["n"].to_numpy())
    steps = steps.assign(predicted=predicted, predicted_batch=batch)
    known = (steps["ess_ratio"] > 0) & (steps["predicted_batch"] > 0) & (steps["step"] > 0)
    table = steps.loc[known, ["group", "ess_ratio", "predicted", "predicted_batch"]]
    _, begins = beginnings(steps.loc[known, ["key"]])
    return Pairs(table, begins, np.log(table["predicted_batch"].to_numpy()), np.log(table["ess_ratio"].to_numpy()))


def kl_table(results: Results, pairs: Pairs | None = None) -> pd.DataFrame:
    """Does ESS say more than token KL times length? One row per group of seeds.

    Columns: the group; `predicted` (median of `exp(-2 L K3)`), `predicted_batch` (what a batch of n then shows),
    `ess` (median measured); `rank_correlation` (Spearman, update by update within each cell, mean over cells) and
    `explained` (share of the variance of log ESS within cells that a straight line in log predicted_batch explains).

    Args:
        results: What was recorded.
        pairs: Of `ess_pairs`, where they are known already.
    """
    known = pairs or ess_pairs(results)
    of_cell = known.table["group"].to_numpy()[known.begins]
    per_cell = correlations(known.x, known.y, known.begins)
    rows = []
    for group, part in known.table.groupby("group", sort=False):
        rank, explained = per_cell[of_cell == group].T
        rows.append(
            {
                "group": group,
                "predicted": part["predicted"].median(),
                "predicted_batch": part["predicted_batch"].median(),
                "ess": part["ess_ratio"].median(),
                "rank_correlation": _mean(rank),
                "explained": _mean(explained),
            }
        )
    columns = ["group", "predicted", "predicted_batch", "ess", "rank_correlation", "explained"]
    return named(pd.DataFrame(rows, columns=columns), results)


def kl_explained_table(results: Results, pairs: Pairs | None = None) -> pd.DataFrame:
    """How much of the variance of log ESS token KL times length explains, over all updates of all cells.

    One row: `cells` with a measured and a predicted ESS, `explained` (squared correlation of log ESS with log
    predicted_batch, 0 to 1) with `low` and `high` (95% interval). The interval resamples whole cells, because updates
    of one cell are not independent; with fewer than two cells all three are NaN.

    Args:
        results: What was recorded.
        pairs: Of `ess_pairs`, where they are known already.
    """
    known = pairs or ess_pairs(results)
    cells = len(known.begins)
    explained, low, high = (float("nan"),) * 3
    if cells >= 2:
        moments = [np.add.reduceat(moment, known.begins) for moment in _moments(known.x, known.y)]
        per_cell: Array = np.column_stack(moments)
        generator = np.random.default_rng(0)
        counts = generator.multinomial(cells, np.full(cells, 1 / cells), size=_REPLICATIONS)
        explained = float(_squared_correlation(per_cell.sum(axis=0)))
        low, high = percentile_interval(explained, _squared_correlation(counts @ per_cell))
    return pd.DataFrame([{"cells": cells, "explained": explained, "explained_low": low, "explained_high": high}])


def _moments(x: Array, y: Array) -> Iterator[Array]:
    """What a squared correlation is made of: 1, x, y, and their squares and product."""
    yield np.ones_like(x)
    yield x
    yield y
    yield x * x
    yield y * y
    yield x * y


def _expected(variance: Array, n: NDArray[np.int64]) -> Array:
    result = np.full(variance.shape, np.nan)
    for size in np.unique(n):
        result[n == size] = expected_ess(variance[n == size], int(size))
    return np.where(np.isfinite(variance), result, np.nan)


def _squared_correlation(moments: Array) -> Array:
    """From sums [..., (n, x, y, xx, yy, xy)]."""
    n, x, y, xx, yy, xy = np.moveaxis(moments, -1, 0)
    spread = (n * xx - x * x) * (n * yy - y * y)
    return np.where(spread > 0, (n * xy - x * y) ** 2 / np.where(spread > 0, spread, 1.0), np.nan)


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")
