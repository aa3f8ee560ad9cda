"""Fact 11: in the prefix chain sequence weights need a batch that grows with the lag, and caps rescue small ones."""

from __future__ import annotations

import pandas as pd

from scorecard.fact import Fact, Part
from scorecard.facts.f10_prefix_bias import LAG_TABLE, PAGE
from scorecard.markdown import numbers, table
from scorecard.tables import Tables

CAP_TABLE = "## Truncated sequence weights, K = 500, H = 1024 (three seeds)"
LAG, FACTOR, LEAST_SHARE = "K=500", 2.0, 0.5


def judge(tables: Tables) -> list[Part]:
    """The batch below which success halves, and what a cap gains at the smallest batch."""
    lags = table(tables.docs / PAGE, LAG_TABLE)
    caps = table(tables.docs / PAGE, CAP_TABLE)
    return [_batch(lags[lags["estimator"] == "Seq IS"]), _cap(caps.iloc[0])]


def _batch(rows: pd.DataFrame) -> Part:
    values = {row["B"]: numbers(row[LAG]) for _, row in rows.iterrows()}
    finite = sorted(int(batch) for batch in values if batch != "inf")
    enough = [
        next((b for b in finite if values[str(b)][which] >= values["inf"][which] / 2), finite[-1] * 2)
        for which in (0, 1)
    ]
    published, ours = enough
    ratio = published / ours
    figure = (
        f"smallest batch with half of the success of the largest: published {published}, here {ours} (smallest tried: "
        f"{finite[0]})"
    )
    verdict = "reproduced" if 1 / FACTOR <= ratio <= FACTOR else "refuted"
    return Part("batch needed", verdict, figure, ratio)


def _cap(row: pd.Series) -> Part:
    bare, capped = numbers(row["no cap"]), numbers(row["cap 2"])
    published, ours = capped[0] - bare[0], capped[1] - bare[1]
    half = (capped[2] ** 2 + bare[2] ** 2) ** 0.5
    bar = LEAST_SHARE * published
    verdict = "reproduced" if ours - half > bar else "refuted" if ours + half < bar else "undecided"
    figure = (
        f"gain of a cap of 2 at B = {row['B']}: published {published:.3f}, here {ours:.3f} [{ours - half:.3f}, "
        f"{ours + half:.3f}]"
    )
    return Part(
        "caps rescue small batches", verdict, figure, ours, ours - half, ours + half, "seeds, t intervals added"
    )


FACT = Fact(
    number=11,
    title="Prefix chain, variance of sequence weights",
    order=101,
    statement="Prefix chain: sequence weights need a batch of about K / 12, and caps rescue small batches.",
    source="blog of VCPO's first author, 31 May 2026",
    rule=(
        "At K = 500: the smallest batch with half of the success of the largest is within a factor of 2 of the "
        "published one (reproduced) or not (refuted). The gain of a cap of 2 at the smallest batch is above half of "
        "the published gain (reproduced) or below it (refuted), intervals of the two added in quadrature. The "
        "published settings are not complete, as that page says."
    ),
    judge=judge,
    pages=(PAGE,),
)
