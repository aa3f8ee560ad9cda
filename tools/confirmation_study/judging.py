"""The number of each statement, with seeds as what varies, and the word it gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from configuration_study.areas import error, reach

from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.prediction.added_value_of_ess import in_common
from vcpo_bench.analysis.prediction.landmarks import Comparison, draws_of
from vcpo_bench.analysis.prediction.panel import Array, Panel

from .design import EVERY, LEAST_FAILURES, LEAST_SEEDS, LEVEL, MARGIN, REPLICATIONS, Area, Statement
from .testing import p_of
from .units import Integers, cases_of, compared, seeds_of

TOO_FEW = "too few"
_UNKNOWN = dict.fromkeys(("value", "se", "low", "high", "p"), math.nan)
Row = dict[str, Any]


def judged(panel: Panel, statements: Sequence[Statement] = EVERY) -> pd.DataFrame:
    """Every statement with its number and its word.

    Args:
        panel: Of `units.prepared`.
        statements: The first is primary; the others share Holm's adjustment, in which *too few* counts as p = 1.

    Returns:
        Columns `statement`, `kind`; `readable` (failed runs of the first AUROC), `failed` (those with a finite score
        and a control, on which it rests), `seeds` (that they are of); `first`, `second` (the two AUROCs, or the bar);
        `value` (first less second), `se`, `low`, `high` (95%), `p`, `p_holm` (the primary's is its own p), `word`.
    """
    table = pd.DataFrame([_row(panel, one) for one in statements])
    corrected = [table["p"].iloc[0], *holm(table["p"].iloc[1:].fillna(1.0))]
    table["p_holm"] = corrected
    return table.assign(word=[word(row) for row in table.to_dict("records")])


def _row(panel: Panel, statement: Statement) -> Row:
    first, second = both(panel, statement)
    units = seeds_of(panel)
    sides = [first] if second is None else [first, second]
    seeds = [int(np.unique(units[side.case]).size) for side in sides]
    facts: Row = {"statement": statement.name, "kind": statement.kind}
    facts |= {"readable": int(cases_of(panel, statement.area).case.size), "failed": int(first.case.size)}
    facts |= {"seeds": min(seeds)} | dict(zip(("first", "second"), _areas(statement, first, second), strict=True))
    if min(seeds) < LEAST_SEEDS or min(side.case.size for side in sides) < LEAST_FAILURES:
        return facts | _UNKNOWN
    return facts | number(statement, first, second, drawn_seeds(units), units)


def number(statement: Statement, first: Comparison, second: Comparison | None, draws: Array, units: Integers) -> Row:
    """The difference with its standard error, 95% interval and p, when these units are drawn anew."""
    one, two = _areas(statement, first, second)
    drawn = first.replicates(draws, units) - (two if second is None else second.replicates(draws, units))
    failed = np.unique(units[first.case]).size
    known = int(failed if second is None else min(failed, np.unique(units[second.case]).size))
    value, se, half = one - two, error(drawn, known), reach(drawn, known)
    p = p_of(value, se, known, statement.kind)
    return {"value": value, "se": se, "low": value - half, "high": value + half, "p": p}


def both(panel: Panel, statement: Statement) -> tuple[Comparison, Comparison | None]:
    """The two sides; of two signals on the same failures, only the pairs in which both have a finite score."""
    first = compared(panel, statement.area)
    if not isinstance(statement.less, Area):
        return first, None
    second = compared(panel, statement.less)
    return in_common(first, second) if statement.area.like(statement.less) else (first, second)


def _areas(statement: Statement, first: Comparison, second: Comparison | None) -> tuple[float, float]:
    bar = statement.less if isinstance(statement.less, float) else math.nan
    return first.auroc(), bar if second is None else second.auroc()


def drawn_seeds(units: Integers) -> Array:
    """How often each run is drawn `[B, N]` when whole seeds are drawn anew."""
    return draws_of(int(units.max()) + 1, REPLICATIONS, 0)[:, units]


def word(row: Mapping[Any, Any]) -> str:
    """`confirmed`, `contradicted` (the uncorrected interval says the opposite), `not confirmed` or `TOO_FEW`."""
    if math.isnan(row["value"]):
        return TOO_FEW
    sign = {"more": 1.0, "less": -1.0}.get(row["kind"])
    if sign is None:
        if row["p_holm"] < LEVEL:
            return "confirmed"
        return "contradicted" if row["low"] > MARGIN or row["high"] < -MARGIN else "not confirmed"
    if row["value"] * sign > 0:
        return "confirmed" if row["p_holm"] < LEVEL else "not confirmed"
    return "contradicted" if row["low"] > 0 or row["high"] < 0 else "not confirmed"
