"""Discrete-time hazard of failing, with covariates known some updates before: how much does each signal raise it?

A row is a run at an evaluation at which its failure may begin (given that it has not failed before); the covariates are
those known PRIMARY_LEAD updates earlier. Log odds are linear in the log of the step (and its square), lag, learning
rate, task and the signal's normal score. With evaluations this frequent an odds ratio is close to a hazard ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.covariates import KNOWN_BEFORE, circumstances, normal_scores
from vcpo_bench.analysis.prediction.logistic import clustered_errors, fit
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Array, Flags, Panel
from vcpo_bench.analysis.prediction.precision_recall import Landmarks, landmarks

_COLUMNS = ["signal", "rows", "n_collapsed", "n_healthy", "ratio", "low", "high", "p"]
_COLUMNS += ["early", "late", "p_proportional", "verdict"]
Row = dict[str, Any]


def hazard_table(panel: Panel) -> pd.DataFrame:
    """One row per signal, each in its own model beside the circumstances.

    Columns: `signal`, `rows`, `n_collapsed`, `n_healthy`; `ratio` (hazard ratio per standard deviation) with
    `low` and `high` (errors clustered by configuration; t with one
    degree of freedom less than there are, for normal intervals are too narrow with a few dozen), `p`, `p_holm` (over
    all but the primary signal); `early` and `late` (the ratio before and after the median onset), `p_proportional`
    (that they are equal), `verdict`.
    """
    rows = landmarks(panel, PRIMARY_LEAD, guard=0)
    table = pd.DataFrame(
        [_one(panel, rows, name) for name in panel.recorded() if name not in KNOWN_BEFORE],
        columns=_COLUMNS,
    )
    table["p_holm"] = holm(table["p"].where(table["signal"] != PRIMARY).to_numpy(dtype=np.float64))
    return table


def _one(panel: Panel, rows: Landmarks, name: str) -> Row:
    values = panel.scores_of(name, rows.run, rows.row)
    known = np.isfinite(values)
    part = Landmarks(rows.run[known], rows.row[known], rows.found[known], rows.positive[known], rows.group[known])
    failed, healthy = part.run[part.positive], np.unique(part.run[panel.healthy[part.run]])
    row: Row = {"signal": name, "rows": int(known.sum()), "n_collapsed": failed.size, "n_healthy": healthy.size}
    if not panel.enough(failed, healthy):
        return row | {"verdict": TOO_FEW}
    score = normal_scores(values[known])(values[known])
    known_before = circumstances(panel, part, np.ones(part.run.size, dtype=bool))
    cluster = panel.cluster[part.run]
    degrees = np.unique(cluster).size - 1
    wide = float(stats.t.ppf(0.975, degrees))
    beta, error = _coefficient(np.column_stack([known_before, score]), part, cluster)
    middle = float(np.median(part.found[part.positive]))
    late = (part.found > middle).astype(np.float64)
    split = np.column_stack([known_before, score, score * late])
    model, errors = _fitted(split, part.positive, cluster)
    early, change = model[-2], model[-1]
    row |= {"ratio": np.exp(beta), "low": np.exp(beta - wide * error), "high": np.exp(beta + wide * error)}
    row |= {"p": _p(beta, error, degrees), "early": np.exp(early), "late": np.exp(early + change)}
    row["p_proportional"] = _p(change, float(errors[-1]), degrees)
    return row | {
        "verdict": "raises" if beta > wide * error else "lowers" if beta < -wide * error else "cannot be told"
    }


def _coefficient(table: Array, part: Landmarks, cluster: NDArray[np.int64]) -> tuple[float, float]:
    model, errors = _fitted(table, part.positive, cluster)
    return float(model[-1]), float(errors[-1])


def _p(value: float, error: float, degrees: int) -> float:
    """Two-sided p of a coefficient against 0."""
    return float(2 * stats.t.sf(abs(value) / error, degrees)) if error > 0 else 1.0


def _fitted(table: Array, positive: Flags, cluster: NDArray[np.int64]) -> tuple[Array, Array]:
    model = fit(table, positive)
    covariance = clustered_errors(model, table, positive, cluster)
    return model.coefficients, np.sqrt(np.diag(covariance))
