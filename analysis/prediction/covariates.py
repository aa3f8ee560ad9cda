"""Rows for hazard models: one per run and evaluation at risk, with what was known some updates before.

Signals enter as normal scores: their ranks among the training rows, mapped to a standard normal. So neither unit nor
tail of a signal matters, and every coefficient is per standard deviation. A missing value enters as the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from vcpo_bench.analysis.prediction.panel import CONFIGURATION, Array, Flags, Panel
from vcpo_bench.analysis.prediction.precision_recall import Landmarks

ESS_FAMILY = ("ess", "ess_used", "token_ess")
"""ESS itself in several forms, hence not among its baselines."""
"""What a run shares with the other seeds of its configuration."""
FATE = "configuration"
"""Among the names of signals: how the training seeds of the same configuration ended."""
KNOWN_BEFORE = ("step", "lag", "lr")
"""Signals that the circumstances contain."""


@dataclass(frozen=True)
class NormalScores:
    """The map from values to normal scores learned from training rows.

    Attributes:
        ordered: The sorted training values.
    """

    ordered: Array

    def __call__(self, values: Array) -> Array:
        """Normal scores [R]; 0 where a value is missing or nothing was learned."""
        if not self.ordered.size:
            return np.zeros(values.shape)
        below = np.searchsorted(self.ordered, values, side="left")
        upto = np.searchsorted(self.ordered, values, side="right")
        share = (below + upto + 1) / (2 * (self.ordered.size + 1))
        return np.where(np.isfinite(values), special.ndtri(share), 0.0)


def normal_scores(values: Array) -> NormalScores:
    """Learn the map from these values; missing ones are left out."""
    return NormalScores(np.sort(values[np.isfinite(values)]))


def circumstances(panel: Panel, rows: Landmarks, train: Flags) -> Array:
    """Step (log, and its square), lag, learning rate and task of each row [R, F], scaled by the training rows."""
    runs = panel.runs.iloc[rows.run]
    step = np.log(rows.found.astype(np.float64))
    columns = [step, (step - np.log(100.0)) ** 2, np.log2(1 + runs["staleness"].to_numpy(dtype=np.float64))]
    columns.append(np.log(runs["lr"].to_numpy(dtype=np.float64)))
    tasks = sorted(panel.runs["task"].unique())
    columns += [(runs["task"] == task).to_numpy(dtype=np.float64) for task in tasks[1:]]
    table = np.column_stack(columns)
    spread = table[train].std(axis=0)
    return np.asarray((table - table[train].mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf))


def configuration_risk(panel: Panel, train: Flags) -> Array:
    """Log odds [N] that a run fails, from the training runs of its task, method, regime, lag and learning rate alone.

    The share of them that failed, shrunk toward the overall share with the weight of one run. A run never counts for
    itself, so that training and held-out runs are treated alike.
    """
    group = panel.strata(CONFIGURATION)
    failed = np.bincount(group[train], weights=panel.failed[train], minlength=int(group.max(initial=0)) + 1)
    seen = np.bincount(group[train], minlength=failed.size)
    overall = np.clip(panel.failed[train].mean() if train.any() else 0.5, 0.01, 0.99)
    own = train.astype(np.float64)
    share = (failed[group] - own * panel.failed + overall) / (seen[group] - own + 1)
    return np.asarray(np.log(share / (1 - share)))


def features(panel: Panel, rows: Landmarks, names: Sequence[str], train: Flags) -> Array:
    """Circumstances and the named signals of each row [R, F].

    Args:
        panel: The runs.
        rows: Of `analysis.prediction.precision_recall.landmarks`.
        names: Signals; `KNOWN_BEFORE` add nothing and are left out. `FATE`: `configuration_risk`.
        train: Which rows teach the scaling [R].
    """
    columns = [circumstances(panel, rows, train)]
    for name in names:
        if name == FATE:
            learned = np.zeros(len(panel.runs), dtype=bool)
            learned[rows.run[train]] = True
            columns.append(configuration_risk(panel, learned)[rows.run][:, None])
        elif name not in KNOWN_BEFORE:
            values = panel.scores_of(name, rows.run, rows.row)
            columns.append(normal_scores(values[train])(values)[:, None])
    return np.concatenate(columns, axis=1)
