"""Does failure grow with the rate? Runs outside of a unit's own search, held against the boundary that it found."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from vcpo_bench.analysis.intervals import wilson

from .design import bracket
from .tables import outcomes, own_searches

DRAWN, LENT = "drawn at random", "lenders of step scales"


def checks(runs: pd.DataFrame) -> pd.DataFrame:
    """How many runs contradict the boundary of their unit: those drawn for this, and those that other units needed.

    Returns:
        Columns `kind`, `runs`, `contradicting`, and `low` to `high`, the Wilson interval of the share. Lenders lie near
        boundaries, so their share says nothing about runs elsewhere.
    """
    found = list(_outside(runs))
    rows = []
    for kind in (DRAWN, LENT):
        wrong = [against for each, against in found if each == kind]
        low, high = wilson(sum(wrong), len(wrong))
        rows.append({"kind": kind, "runs": len(wrong), "contradicting": sum(wrong), "low": low, "high": high})
    return pd.DataFrame(rows)


def _outside(runs: pd.DataFrame) -> Iterator[tuple[str, bool]]:
    """Every run outside of its unit's search: why it was made, and whether it contradicts the boundary."""
    found = outcomes(runs)
    for unit, own in own_searches(runs).items():
        low, _ = bracket(own.outcomes)
        for rung, lost in found[unit].items():
            if rung not in own.outcomes:
                yield DRAWN if rung == own.check else LENT, lost == (rung <= low)
