"""Fact 13: OPOB in one backward pass costs 19% of time and 14% of memory."""

from __future__ import annotations

from scorecard.fact import Fact, Part
from scorecard.markdown import table
from scorecard.tables import Tables

PAGE = "benchmarks/score_norms.md"
ROW = "norms + book-keeping"
PLACES = {
    "0.1 M parameters": "## The tiny policy: 0.10 M parameters, 128 trajectories of 12 + 12 tokens",
    "15 M parameters": "## A Llama with random weights: 15.2 M parameters, 16 trajectories of 256 tokens, one thread",
}


def judge(tables: Tables) -> list[Part]:
    """What was measured at other sizes; no verdict follows from it."""
    texts = []
    for place, heading in PLACES.items():
        rows = table(tables.docs / PAGE, heading)
        row = rows[rows["one update"].str.strip("*") == ROW].iloc[0]
        texts.append(f"{row['time'].strip('*')} times the time and {row['memory']} times the memory with {place}")
    return [Part("0.5 to 1.5 B parameters", "cannot be tested here", "; ".join(texts))]


FACT = Fact(
    number=13,
    title="Overhead of OPOB",
    order=103,
    statement="OPOB with one backward pass costs 19% of step time and 14% of memory (two backward passes: 100%).",
    source="VCPO authors' blog, overhead table",
    rule=(
        "Cannot be tested without a GPU: models of 0.5 to 1.5 B parameters and 512 or more tokens. Would be "
        "reproduced at 10 to 30% of time and at most 20% of memory. What was measured at small sizes is shown."
    ),
    judge=judge,
    pages=(PAGE,),
)
