"""Importance weights trajectory by trajectory, where recorded: lag buckets, gradient ESS, tails, |TIS - 1|.

Cells are read one at a time, so that a study with every trajectory of every update fits in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.diagnostics.ess import entropy_ess, kish_ess, max_weight_ess
from vcpo_bench.analysis.diagnostics.pareto_tail import tail
from vcpo_bench.analysis.results import Results

Array = NDArray[np.float64]
Estimator = Callable[[Array, NDArray[np.bool_]], Array]

SEQUENCE_CAP, TOKEN_CAP = 8.0, 2.0
"""Caps of `|TIS - 1|`: the comparison's sequence and token truncation."""

WINDOW = 20
"""Updates pooled for one k-hat."""

_QUANTITIES = {"weight": "log_weight", "weight x |A| x norm": "log_contribution"}
_ESTIMATORS = {"kish": kish_ess, "entropy": entropy_ess, "max_weight": max_weight_ess}


def sample_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Tables `per_update` (`per_update`), `by_lag` and `tails` (`tails`) over all cells.

    `by_lag` has one row per `task`, `method`, `staleness` and `bucket` (smallest lag in it), with
    `trajectories` and the medians over updates of `kish`, `entropy` and `max_weight` of the trajectories in
    the bucket. All three are empty where no trajectories were recorded.
    """
    collected: dict[str, list[pd.DataFrame]] = {"per_update": [], "by_lag": [], "tails": []}
    for key, recorded in results.samples_by_cell():
        samples = prepared(recorded)
        for name, table in (
            ("per_update", per_update(samples)),
            ("by_lag", _by(samples, ["step", "bucket"])),
            ("tails", tails(samples)),
        ):
            table.insert(0, "key", key)
            collected[name].append(table)
    about = results.cells[["key", "task", "method", "staleness"]]
    tables = {
        name: pd.concat(parts, ignore_index=True).merge(about, on="key") if parts else pd.DataFrame()
        for name, parts in collected.items()
    }
    if len(tables["by_lag"]):
        groups = tables["by_lag"].groupby(["task", "method", "staleness", "bucket"])
        medians = groups[list(_ESTIMATORS)].median()
        medians.insert(0, "trajectories", groups["trajectories"].sum())
        tables["by_lag"] = medians.reset_index()
    return tables


def prepared(samples: pd.DataFrame) -> pd.DataFrame:
    """The trajectories of one cell with `lag`, `bucket`, `advantage`, `log_contribution` and `applied`.

    `advantage` is the common one, group mean over population standard deviation, recomputed from the recorded
    rewards of the group (0 where all are equal). `log_contribution` is `log(w |A| ||grad log pi||)`; `applied`
    is `|c| ||grad log pi||` with c the mean coefficient per token: exact where a method gives all tokens of a
    trajectory one coefficient. Both need score norms (`--record full`) and are NaN without.
    """
    group = samples.groupby(["step", "batch", "prompt"], sort=False)["reward"]
    centered = samples["reward"] - group.transform("mean")
    spread = group.transform("std", ddof=0)
    advantage = (centered / spread.where(spread > 1e-8)).fillna(0.0)
    lag = samples["step"] - samples["version_oldest"]
    norm = np.sqrt(samples["score_norm_sq"].to_numpy(dtype=np.float64))
    per_token = samples["coefficient_sum"].abs() / samples["length"].clip(lower=1)
    return samples.assign(
        lag=lag,
        bucket=lag_bucket(lag.to_numpy()),
        advantage=advantage,
        log_contribution=samples["log_weight"].to_numpy() + _log(np.abs(advantage.to_numpy()) * norm),
        applied=per_token.to_numpy() * norm,
    ).sort_values("step", kind="stable", ignore_index=True)


def lag_bucket(lag: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lower edge of the bucket a lag falls in: 0, 1, 2-3, 4-7, 8-15, ..."""
    safe = np.maximum(lag, 1)
    return np.where(lag <= 0, 0, 2 ** np.floor(np.log2(safe) + 1e-9)).astype(np.int64)


def per_update(samples: pd.DataFrame) -> pd.DataFrame:
    """One row per recorded update of one cell.

    Columns: `step`, `trajectories`; `kish`, `entropy`, `max_weight` of the raw sequence weights;
    `gradient_ess` (Kish ratio of `w |A| ||grad log pi||`) and `gradient_ess_applied` (of what the method's own
    coefficients make of it); `tis_1` (mean `|min(w, 8) - 1|`) and `second_moment` (mean squared log-weight) of
    sequences; `token_ess`, `token_tis_1` (mean `|min(e^l, 2) - 1|`) and `token_second_moment` (mean l^2,
    M2PO's quantity) of tokens.

    Args:
        samples: Of `prepared`.
    """
    table = _by(samples, ["step"])
    steps = samples["step"].to_numpy()
    log_w = samples["log_weight"].to_numpy(dtype=np.float64)
    capped = np.abs(np.exp(np.minimum(log_w, np.log(SEQUENCE_CAP))) - 1)
    table["gradient_ess"] = _per_group(kish_ess, samples["log_contribution"], steps)
    table["gradient_ess_applied"] = _per_group(kish_ess, _log(samples["applied"].to_numpy()), steps)
    means = pd.DataFrame({"tis_1": capped, "second_moment": np.square(log_w)}).groupby(steps).mean()
    table = table.join(means, on="step")
    return table.join(_token_table(samples), on="step")


def tails(samples: pd.DataFrame, windows: int = 4, replications: int = 100) -> pd.DataFrame:
    """K-hat over trailing windows of `WINDOW` updates, at `windows` evenly spaced updates of one cell.

    Columns: `step` (end of the window), `quantity` (the weight, or the weight times |A| times the score norm: the
    integrand of the policy gradient can be heavy-tailed while the weights look fine), `k`, `low`, `high`, `n`,
    `limit`, `reason`. The interval resamples the trajectories of the window.
    """
    steps = samples["step"].to_numpy()
    rows = []
    for end in np.unique(np.linspace(min(WINDOW - 1, steps[-1]), steps[-1], windows).astype(int)):
        inside = slice(np.searchsorted(steps, end - WINDOW, "right"), np.searchsorted(steps, end, "right"))
        for quantity, column in _QUANTITIES.items():
            values = samples[column].to_numpy(dtype=np.float64)[inside]
            if values.size and not np.isnan(values).all():
                rows.append({"step": int(end), "quantity": quantity} | tail(values, replications)._asdict())
    return pd.DataFrame(rows, columns=["step", "quantity", "k", "low", "high", "n", "limit", "reason"])


def _by(samples: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Number and three sequence-level ESS ratios of the trajectories of every group."""
    table = samples.groupby(names).size().rename("trajectories").reset_index()
    group = samples.groupby(names).ngroup().to_numpy()
    for name, estimator in _ESTIMATORS.items():
        table[name] = _per_group(estimator, samples["log_weight"], group)
    return table


def _per_group(estimator: Estimator, log_values: ArrayLike, group: ArrayLike) -> Array:
    """Apply an ESS to every group at once, groups in ascending order."""
    values = np.asarray(log_values, dtype=np.float64)
    names, member, size = np.unique(np.asarray(group), return_inverse=True, return_counts=True)
    order = np.argsort(member, kind="stable")
    column = np.arange(values.size) - np.repeat(np.cumsum(size) - size, size)
    laid_out = np.zeros((len(names), int(size.max())))
    laid_out[member[order], column] = values[order]
    return estimator(laid_out, np.arange(laid_out.shape[1]) < size[:, None])


def _token_table(samples: pd.DataFrame) -> pd.DataFrame:
    """Token-level statistics per update from the recorded JSON lists; NaN where none were recorded. Indexed by step."""
    texts = samples["log_ratios"]
    recorded = texts.map(lambda text: isinstance(text, str) and bool(text)).to_numpy(dtype=bool)
    nested = json.loads(f"[{','.join(texts[recorded])}]")
    ratios = np.array([value for row in nested for value in row], dtype=np.float64)
    step = np.repeat(samples["step"].to_numpy()[recorded], [len(row) for row in nested])
    if ratios.size == 0:
        return pd.DataFrame(columns=["token_ess", "token_tis_1", "token_second_moment"], dtype=np.float64)
    capped = np.abs(np.exp(np.minimum(ratios, np.log(TOKEN_CAP))) - 1)
    means = pd.DataFrame({"token_tis_1": capped, "token_second_moment": np.square(ratios)}).groupby(step).mean()
    means.insert(0, "token_ess", _per_group(kish_ess, ratios, step))
    return means


def _log(values: ArrayLike) -> Array:
    """Logarithm of non-negative values: `-inf` for 0, NaN for NaN, without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.asarray(values, dtype=np.float64)))
