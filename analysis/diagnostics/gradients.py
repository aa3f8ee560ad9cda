"""Gradients as recorded: size, clipping, direction, and how many trajectories really carry an update."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnostics.seed_groups import named, with_group
from vcpo_bench.analysis.diagnostics.trajectory_weights import prepared
from vcpo_bench.analysis.results import GROUP, Results

Array = NDArray[np.float64]

_NORMS = ("grad_norm", "grad_norm_clipped", "step_scale", "lr", "grad_cosine", "head_grad_norm")
_MEDIANS = ("largest_share", "gini", "noise_to_signal")


def norm_table(results: Results) -> pd.DataFrame:
    """One row per group of seeds, over all their updates.

    Columns: the group; `updates`; `norm`, `norm_q95`, `norm_max` (before clipping); `norm_clipped` (median
    after); `clipped` (share of updates that gradient clipping changed); `clip_factor` (median of after / before);
    `step_scale` (median of the method's own multiplier); `effective_rate` (median of lr x step_scale x clip
    factor; an adaptive optimizer undoes a constant factor, not a varying one); `cosine` (median with the previous
    gradient; `diagnostics` only) and `head_share` (median norm of the output head over the whole).
    """
    steps = with_group(results, *_NORMS)
    norm, clipped = steps["grad_norm"], steps["grad_norm_clipped"]
    factor = (clipped / norm.where(norm > 0)).clip(upper=1.0)
    steps = steps.assign(
        factor=factor,
        was_clipped=(factor < 1 - 1e-6).where(factor.notna()).astype("float64"),
        effective=steps["lr"] * factor,
        head=steps["head_grad_norm"] / norm.where(norm > 0),
    )
    groups = steps.groupby("group", sort=False)
    table = pd.DataFrame(
        {
            "updates": groups.size(),
            "norm": groups["grad_norm"].median(),
            "norm_q95": groups["grad_norm"].quantile(0.95),
            "norm_max": groups["grad_norm"].max(),
            "norm_clipped": groups["grad_norm_clipped"].median(),
            "clipped": groups["was_clipped"].mean(),
            "clip_factor": groups["factor"].median(),
            "step_scale": groups["step_scale"].median(),
            "effective_rate": groups["effective"].median(),
            "cosine": groups["grad_cosine"].median(),
            "head_share": groups["head"].median(),
        }
    )
    return named(table.reset_index(), results)


def contribution_table(results: Results) -> pd.DataFrame:
    """How the update is shared among trajectories: one row per recorded update with score norms.

    A trajectory contributes `g_i = |c_i| ||grad log pi_i||`, with c_i its mean coefficient per token (exact where
    a method gives all its tokens one coefficient). Columns: `key`, `step`, `trajectories` recorded;
    `largest_share` (largest g_i over their sum); `gini` of the g_i; `noise_to_signal`: variance of the mean
    gradient (trace) over its squared norm, `(n sum g_i^2 - G^2) / ((n - 1) G^2)` with G the recorded norm of the
    whole gradient and n trajectories consumed; where only some were recorded, the sum is scaled up.
    """
    rows = []
    consumed, whole = pd.Series(dtype="float64"), pd.Series(dtype="float64")
    for number_of_cell, (key, recorded) in enumerate(results.samples_by_cell()):
        if number_of_cell == 0:
            consumed = results.lags.groupby(["key", "step"])["trajectories"].sum()
            whole = results.step_columns("grad_norm").set_index(["key", "step"])["grad_norm"]
        samples = prepared(recorded)
        for step, share in samples["applied"].dropna().groupby(samples["step"]):
            values = share.to_numpy(dtype=np.float64)
            number = int(consumed.get((key, step), values.size))
            squares = float(np.square(values).sum()) * number / values.size
            noise = noise_to_signal(squares, float(whole.get((key, step), np.nan)), number)
            largest = values.max() / values.sum() if values.sum() > 0 else np.nan
            rows.append((key, step, values.size, largest, gini(values), noise))
    return pd.DataFrame(rows, columns=["key", "step", "trajectories", *_MEDIANS])


def contribution_medians(contributions: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Medians over updates of the columns of `contribution_table`, one row per group of seeds.

    Args:
        contributions: Of `contribution_table`.
        cells: `analysis.results.Results.cells`.
    """
    groups = contributions.merge(cells[["key", *GROUP]], on="key").groupby(GROUP, sort=False, dropna=False)
    return groups[list(_MEDIANS)].median().reset_index()


def gini(values: Array) -> float:
    """Gini coefficient of non-negative values [n]: 0 when equal, 1 - 1/n when one has everything; NaN: all zero."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    total = ordered.sum()
    if total <= 0:
        return float("nan")
    position = np.arange(1, ordered.size + 1)
    return float((2 * position - ordered.size - 1) @ ordered / (ordered.size * total))


def noise_to_signal(sum_of_squares: float, norm: float, n: int) -> float:
    """Trace of the covariance of the mean of n gradients over its squared norm, from norms alone.

    Args:
        sum_of_squares: Of the norms of the n summands of the whole gradient.
        norm: Of the whole gradient, their vector sum.
        n: Number of summands.

    Returns:
        The norm test's quantity; below 1 the direction is known better than it is noisy. NaN for a gradient of zero, or
        so small or large that its square is no number.
    """
    if n < 2 or not 0 < norm * norm < math.inf:
        return float("nan")
    return (n * sum_of_squares - norm**2) / ((n - 1) * norm**2)
