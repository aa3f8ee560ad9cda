"""Fact 10: in the prefix chain token and geometric weights lose success with lag, sequence weights do not (bias)."""

from __future__ import annotations

import pandas as pd

from scorecard.fact import Fact, Part
from scorecard.markdown import numbers, table
from scorecard.tables import Tables

PAGE = "benchmarks/prefix_chain.md"
LAG_TABLE = "## Lag and batch, H = 1024 (success probability)"
HORIZON_TABLE = "## Horizon, K = 500 (ours: exact dynamics; published: B = 2048)"
TOLERANCE = 0.04


def judge(tables: Tables) -> list[Part]:
    """Largest deviation over lags at the largest batch, and over horizons."""
    lags = table(tables.docs / PAGE, LAG_TABLE)
    horizons = table(tables.docs / PAGE, HORIZON_TABLE)
    return [_part("lag", lags[lags["B"] == "inf"].iloc[:, 2:]), _part("horizon", horizons.iloc[:, 1:])]


def _part(name: str, cells: pd.DataFrame) -> Part:
    pairs = [numbers(cell)[:2] for cell in cells.to_numpy().ravel()]
    worst = max(abs(published - ours) for published, ours in pairs)
    figure = f"largest difference over {len(pairs)} values: {worst:.3f}"
    return Part(name, "reproduced" if round(worst, 6) <= TOLERANCE else "refuted", figure, worst)


FACT = Fact(
    number=10,
    title="Prefix chain, bias of token weights",
    order=100,
    statement=(
        "Prefix chain at large batches: success falls with lag for token weights (.751 to .223) and geometric ones "
        "(.751 to .180), and with the horizon."
    ),
    source="blog of VCPO's first author, 31 May 2026",
    rule=(
        "Every published value is met within 0.04 (reproduced), or one is not (refuted). Two constants of ours were "
        "fitted, as that page says."
    ),
    judge=judge,
    pages=(PAGE,),
)
