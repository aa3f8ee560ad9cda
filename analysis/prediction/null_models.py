"""What would a signal without the information in question score? AUROC at the primary lead under five null models.

- `permuted within lag`: the series of whole configurations are reassigned at random among those of the same task,
  regime and lag, and among their seeds. Seeds tend to share their fate, so single runs are not exchangeable.
- `permuted within lag and method`: and of the same method. A signal that beats the first but not this one identifies
  dangerous methods, not runs.
- `permuted within configuration`: and of the same learning rate: among the seeds of one configuration.
- `shifted`: case and controls are all read at one earlier step, drawn at random. A signal that does not beat it marks a
  run from early on and says nothing about when it fails.
- `surrogate`: every run is read from a stationary Gaussian series (as AR(1) or phase-randomized surrogates are) with
  the mean and spread of its own history up to the landmark. A signal that does not beat it has a level but no trend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.prediction.landmarks import RiskSets, area_at, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import CONFIGURATION, LEAST_RUNS, MATCH, PRIMARY_LEAD, Array, Panel

DRAWS = 200
WITHIN = "permuted within configuration"
"""The null whose unit is the run: it holds the configuration fixed, so it needs runs but not many configurations."""
PERMUTED = {
    "permuted within lag": MATCH,
    "permuted within lag and method": (*MATCH, "method"),
    WITHIN: CONFIGURATION,
}
KINDS = (*PERMUTED, "shifted", "surrogate")


def nulls_table(panel: Panel) -> pd.DataFrame:
    """One row per signal with enough runs and null.

    Columns: `signal`, `null`, `value` (the AUROC), `null_mean`, `null_low`, `null_high` (95% of the draws),
    `p` (one-sided share of draws that are as great, the signal's own among them).
    """
    sets = risk_sets(panel, PRIMARY_LEAD)
    rows: list[dict[str, Any]] = []
    for name in panel.recorded():
        scores = panel.scores(name)
        mine = compare(scores, sets)
        runs = mine.runs(panel.healthy)
        if min(one.size for one in runs) < LEAST_RUNS:
            continue
        value = mine.auroc()
        for kind in KINDS if panel.enough(*runs) else (WITHIN,):
            drawn = np.array([area_at(at, sets) for at in _draws(kind, scores, sets, panel)])
            drawn = drawn[np.isfinite(drawn)]
            low, high = np.quantile(drawn, [0.025, 0.975])
            row = {"signal": name, "null": kind, "value": value, "null_mean": float(drawn.mean())}
            row |= {"null_low": float(low), "null_high": float(high)}
            rows.append(row | {"p": float((1 + (drawn >= value - 1e-12).sum()) / (1 + drawn.size))})
    return pd.DataFrame(rows, columns=["signal", "null", "value", "null_mean", "null_low", "null_high", "p"])


def _draws(kind: str, scores: Array, sets: RiskSets, panel: Panel) -> Iterator[Array]:
    """Scores at the landmarks [C, N] in each draw of a null."""
    generator = np.random.default_rng(KINDS.index(kind))
    if kind in PERMUTED:
        at = scores[:, sets.row].T
        stratum, whole = panel.strata(PERMUTED[kind]), panel.configuration
        unit = np.arange(stratum.size) if PERMUTED[kind] == CONFIGURATION else whole
        for _ in range(DRAWS):
            yield at[:, _permutation(stratum, unit, generator)]
    elif kind == "shifted":
        for _ in range(DRAWS):
            yield scores[:, generator.integers(0, sets.row + 1)].T
    else:
        mean, spread = _history(scores)
        center, width = mean[:, sets.row].T, spread[:, sets.row].T
        for _ in range(DRAWS):
            yield center + width * generator.standard_normal(center.shape)


def _permutation(
    stratum: NDArray[np.int64], unit: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Of which run each run takes the series [N], when units of runs are permuted within strata.

    The runs of a unit take those of the other in random order; a unit with fewer runs gives some twice.
    """
    _, first, count = np.unique(unit, return_index=True, return_counts=True)
    giver = np.empty(first.size, dtype=np.int64)
    giver[np.argsort(stratum[first], kind="stable")] = np.lexsort((generator.random(first.size), stratum[first]))
    begin = count.cumsum() - count
    place = np.empty(unit.size, dtype=np.int64)
    place[np.argsort(unit, kind="stable")] = np.arange(unit.size)
    dealt = np.lexsort((generator.random(unit.size), unit))
    source = giver[unit]
    return np.asarray(dealt[begin[source] + (place - begin[unit]) % count[source]])


def _history(scores: Array) -> tuple[Array, Array]:
    """Mean and standard deviation [N, S] of the scores up to each update."""
    known = np.isfinite(scores)
    number = known.cumsum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, scores, 0.0).cumsum(axis=1) / number
        square = np.where(known, scores**2, 0.0).cumsum(axis=1) / number
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
