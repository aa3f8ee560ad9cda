"""Importance weights trajectory by trajectory, where recorded: lag buckets, gradient ESS, tails, |TIS - 1|."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.ess import entropy_ess, kish_ess, max_weight_ess
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.tails import tail

Array = NDArray[np.float64]

SEQUENCE_CAP, TOKEN_CAP = 8.0, 2.0
"""Caps of ``|TIS - 1|``: the comparison's sequence and token truncation."""

WINDOW = 20
"""Updates pooled for one k-hat."""

_QUANTITIES = {"weight": "log_weight", "weight x |A| x norm": "log_contribution"}


def prepared_samples(results: Results) -> pd.DataFrame:
    """``results.samples`` with ``lag``, ``bucket``, ``advantage``, ``log_contribution`` and ``applied``.

    ``advantage`` is the common one, group mean over population standard deviation, recomputed from the recorded
    rewards of the group (0 where all are equal). ``log_contribution = log(w |A| ||grad log pi||)`` and ``applied =
    |c| ||grad log pi||``
    with c the mean coefficient per token: exact where a method gives all tokens of a trajectory one coefficient.
    Both need score norms (``--record full``) and are NaN without.
    """
    samples = results.samples
    group = samples.groupby(["key", "step", "batch", "prompt"], sort=False)["reward"]
    centred = samples["reward"] - group.transform("mean")
    spread = group.transform("std", ddof=0)
    advantage = (centred / spread.where(spread > 1e-8)).fillna(0.0)
    lag = samples["step"] - samples["version_oldest"]
    norm = np.sqrt(samples["score_norm_sq"].to_numpy(dtype=np.float64))
    size = np.abs(advantage.to_numpy()) * norm
    log_size = np.where(size > 0, np.log(np.where(size > 0, size, 1.0)), np.where(np.isnan(size), np.nan, -np.inf))
    per_token = samples["coefficient_sum"].abs() / samples["length"].clip(lower=1)
    return samples.assign(
        lag=lag,
        bucket=lag_bucket(lag.to_numpy()),
        advantage=advantage,
        log_contribution=samples["log_weight"].to_numpy() + log_size,
        applied=per_token.to_numpy() * norm,
    )


def lag_bucket(lag: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lower edge of the bucket a lag falls in: 0, 1, 2-3, 4-7, 8-15, ..."""
    safe = np.maximum(lag, 1)
    return np.where(lag <= 0, 0, 2 ** np.floor(np.log2(safe) + 1e-9)).astype(np.int64)


def ess_by_lag(results: Results, samples: pd.DataFrame) -> pd.DataFrame:
    """Sequence-level ESS within lag buckets of :func:`prepared_samples`, one row per method, lag and bucket.

    Columns: ``task``, ``method``, ``staleness``, ``bucket`` (smallest lag in it), ``trajectories`` and the medians
    over updates of ``kish``, ``entropy``, ``max_weight`` (ratios of the trajectories in the bucket).
    """
    rows = [
        dict(zip(("key", "step", "bucket"), name, strict=True)) | _three(part["log_weight"].to_numpy())
        for name, part in samples.groupby(["key", "step", "bucket"], sort=False)
    ]
    per_update = pd.DataFrame(rows).merge(results.cells[["key", "task", "method", "staleness"]], on="key")
    groups = per_update.groupby(["task", "method", "staleness", "bucket"])
    medians = groups[["kish", "entropy", "max_weight"]].median()
    medians.insert(0, "trajectories", groups["trajectories"].sum())
    return medians.reset_index()


def weights_per_update(samples: pd.DataFrame) -> pd.DataFrame:
    """One row per recorded update of every cell, from :func:`prepared_samples`.

    Columns: ``key``, ``step``, ``trajectories``; ``kish``, ``entropy``, ``max_weight`` of the raw sequence weights;
    ``gradient_ess`` (Kish ratio of ``w |A| ||grad log pi||``) and ``gradient_ess_applied`` (of what the method's own
    coefficients make of it); ``tis_1`` (mean ``|min(w, 8) - 1|``), ``token_tis_1`` (mean ``|min(e^l, 2) - 1|``);
    ``second_moment`` (mean squared sequence log-weight) and ``token_second_moment`` (mean l^2, M2PO's quantity).
    """
    rows = []
    for (key, step), part in samples.groupby(["key", "step"], sort=False):
        log_w = part["log_weight"].to_numpy(dtype=np.float64)
        with np.errstate(divide="ignore"):
            applied = np.log(part["applied"].to_numpy(dtype=np.float64))
        rows.append(
            {"key": key, "step": step}
            | _three(log_w)
            | {
                "gradient_ess": float(kish_ess(part["log_contribution"])),
                "gradient_ess_applied": float(kish_ess(applied)),
                "tis_1": float(np.abs(np.exp(np.minimum(log_w, np.log(SEQUENCE_CAP))) - 1).mean()),
                "second_moment": float(np.square(log_w).mean()),
            }
            | _token_columns(part["log_ratios"])
        )
    return pd.DataFrame(rows)


def tail_table(results: Results, samples: pd.DataFrame, windows: int = 4, replications: int = 100) -> pd.DataFrame:
    """K-hat over trailing windows of :data:`WINDOW` updates, at ``windows`` evenly spaced updates of every cell.

    Columns: ``key``, ``method``, ``staleness``, ``step`` (end of the window), ``quantity`` (the weight, or the
    weight times |A| times the score norm: the integrand of the policy gradient can be heavy-tailed while the weights
    look fine), ``k``, ``low``, ``high``, ``n``, ``limit``, ``reason``. The interval resamples trajectories of the
    window.
    """
    about = results.cells.set_index("key")[["method", "staleness"]]
    rows = []
    for key, part in samples.groupby("key", sort=False):
        steps, last = part["step"].to_numpy(), int(part["step"].max())
        for end in np.unique(np.linspace(min(WINDOW, last), last, windows).astype(int)):
            pooled = part[(steps <= end) & (steps > end - WINDOW)]
            for quantity, column in _QUANTITIES.items():
                values = pooled[column].to_numpy(dtype=np.float64)
                if values.size == 0 or np.isnan(values).all():
                    continue
                fitted = tail(values, replications)._asdict()
                rows.append({"key": key, **about.loc[key], "step": int(end), "quantity": quantity} | fitted)
    columns = ["key", "method", "staleness", "step", "quantity", "k", "low", "high", "n", "limit", "reason"]
    return pd.DataFrame(rows, columns=columns)


def tail_findings(table: pd.DataFrame) -> list[str]:
    """Sentences about the tail table: how often k-hat is surely above, or surely below, what its n allows."""
    sentences = []
    for quantity, rows in table.groupby("quantity", sort=False):
        known = rows[rows["k"].notna()]
        if known.empty:
            reasons = ", ".join(sorted(set(rows["reason"])))
            sentences.append(f"Tail index of the {quantity}: not applicable anywhere ({reasons}).")
            continue
        above, below = int((known["low"] > known["limit"]).sum()), int((known["high"] < known["limit"]).sum())
        sentences.append(
            f"Tail index of the {quantity}: of {len(known)} windows of about {known['n'].median():.0f} trajectories, "
            f"k-hat is surely above what that n allows in {above}, surely below in {below}, and undecided in the rest."
        )
    return sentences


def _three(log_w: Array) -> dict[str, float]:
    estimators = {"kish": kish_ess, "entropy": entropy_ess, "max_weight": max_weight_ess}
    return {"trajectories": len(log_w)} | {name: float(ess(log_w)) for name, ess in estimators.items()}


def _token_columns(log_ratios: pd.Series) -> dict[str, float]:
    """Token-level statistics from the recorded JSON lists; NaN where none were recorded."""
    recorded = [text for text in log_ratios if isinstance(text, str) and text]
    nested = json.loads(f"[{','.join(recorded)}]")
    ratios = np.array([value for row in nested for value in row], dtype=np.float64)
    if ratios.size == 0:
        return {"token_ess": np.nan, "token_tis_1": np.nan, "token_second_moment": np.nan}
    return {
        "token_ess": float(kish_ess(ratios)),
        "token_tis_1": float(np.abs(np.exp(np.minimum(ratios, np.log(TOKEN_CAP))) - 1).mean()),
        "token_second_moment": float(np.square(ratios).mean()),
    }
