"""The tests of a statement, and the chance that one is confirmed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy import stats

from .design import LEVEL, MARGIN, PRIMARY, Kind


def p_of(value: float, se: float, units: int, kind: Kind) -> float:
    """Of the hypothesis that what is stated is wrong: two-sided for a sign, two one-sided tests for equivalence.

    Where every replicate gives the same number there is no doubt left: p is 0 on the stated side and 1 elsewhere.
    """
    inside = MARGIN - abs(value) if kind == "equivalent" else abs(value)
    if se == 0:
        return 0.0 if inside > 0 else 1.0
    tails = 1 if kind == "equivalent" else 2
    return float(tails * stats.t.sf(inside / se, units - 1))


def powers(known: pd.DataFrame, seeds: int) -> pd.DataFrame:
    """How likely each statement is to be confirmed by so many new seeds, if the known ones tell the truth.

    Args:
        known: Of `judging.judged`, on the seeds that the statements come from.
        seeds: That will be asked; errors are taken to fall with their root.

    Returns:
        Columns `statement`, `kind`, `value`, `se`, `power` (at 5%) and `power_first` (at 5% over the number of
        secondary statements: the hardest step of Holm's adjustment; the primary has none).
    """
    rows = []
    for row in known.to_dict("records"):
        se = row["se"] * math.sqrt(row["seeds"] / seeds)
        share = 1 if row["statement"] == PRIMARY.name else len(known) - 1
        each = {f"power{end}": _power(row, se, seeds, LEVEL / n) for end, n in (("", 1), ("_first", share))}
        rows.append({name: row[name] for name in ("statement", "kind", "value")} | {"se": se} | each)
    return pd.DataFrame(rows)


def _power(row: Mapping[Any, Any], se: float, seeds: int, level: float) -> float:
    """By the noncentral t distribution; for equivalence by a normal estimate around the known value."""
    if row["kind"] == "equivalent":
        inside = MARGIN - stats.t.ppf(1 - level, seeds - 1) * se
        above, below = (float(stats.norm.cdf((end - row["value"]) / se)) for end in (inside, -inside))
        return max(above - below, 0.0)
    sign = 1.0 if row["kind"] == "more" else -1.0
    return float(stats.nct.sf(stats.t.ppf(1 - level / 2, seeds - 1), seeds - 1, sign * row["value"] / se))
