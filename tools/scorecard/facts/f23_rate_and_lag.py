"""Fact 23: the largest stable learning rate falls as 1 / lag."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pandas as pd

from scorecard.fact import Fact, Part
from scorecard.rules import number, within
from scorecard.tables import Tables

PAGE = "studies/phase/exponents.csv"
METHODS, LAW = ("reinforce", "tis", "clip"), (0.75, 1.25)


def judge(tables: Tables) -> list[Part]:
    """One part per task and method of the phase study, with the lag reached at the loss."""
    rows = pd.read_csv(tables.docs / PAGE)
    rows = rows[rows["method"].isin(METHODS) & (rows["lag"] == "reached")]
    return [_part(row) for row in rows.to_dict("records")]


def _part(row: Mapping[Hashable, object]) -> Part:
    name = f"{row['method']} on {row['task']}"
    value, low, high = (float(str(row[column])) for column in ("exponent", "low", "high"))
    if value != value:
        return Part(name, "undecided", "the boundaries lie at an end of the rates that were tried")
    return Part(
        name, within(low, high, *LAW), f"exponent {number(value, low, high)}", value, low, high, "seeds, profile"
    )


FACT = Fact(
    number=23,
    order=104,
    statement="The largest stable learning rate falls as 1 / lag; updates x lag x rate is about constant at collapse.",
    source="staleness-learning rate scaling laws (2607.01083)",
    rule=(
        "The phase study's exponents, with the lag reached at the loss, for reinforce, tis and clip per task. The "
        "interval lies within 0.75 to 1.25 (reproduced) or outside (refuted)."
    ),
    judge=judge,
    pages=(PAGE,),
)
