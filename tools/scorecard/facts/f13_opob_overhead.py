"""Fact 13: OPOB in one backward pass costs 19% of time and 14% of memory."""

from __future__ import annotations

import json
from typing import Any

from scorecard.fact import Fact, Part, Verdict
from scorecard.markdown import table
from scorecard.tables import Tables

PAGE, GPU = "benchmarks/score_norms.md", "benchmarks/gpu/2026-11-26-h200.json"
ROW = "norms + book-keeping"
PLACES = {
    "0.1 M parameters": "## The tiny policy: 0.10 M parameters, 128 trajectories of 12 + 12 tokens",
    "15 M parameters": "## A Llama with random weights: 15.2 M parameters, 16 trajectories of 256 tokens, one thread",
}
TIME, MEMORY = (1.1, 1.3), 1.2
"""Bars of the rule, as ratios to the plain step."""


def judge(tables: Tables) -> list[Part]:
    """The sizes of the rule, measured once on a GPU; smaller ones on a CPU judge nothing."""
    day = json.loads((tables.docs / GPU).read_text())["measurements"]
    found = {facts["name"]: facts["result"]["ways"] for facts in day if facts["name"].startswith("norms-1B-")}
    return [*(_part(name.rpartition("-")[2], ways) for name, ways in found.items()), _small(tables)]


def _part(tokens: str, ways: list[dict[str, Any]]) -> Part:
    """Time and memory of book-keeping and of two backward passes; the rule names no bar for *refuted*."""
    by_way = {row["way"]: row for row in ways}
    plain, own, two = (by_way[way] for way in ("plain", "bookkeeping", "second_backward"))
    time, memory = own["seconds"] / plain["seconds"], own["peak_gib"] / plain["peak_gib"]
    verdict: Verdict = "reproduced" if TIME[0] <= time <= TIME[1] and memory <= MEMORY else "undecided"
    figure = (
        f"{time:.2f} times the time and {memory:.2f} times the memory; "
        f"two backward passes: {two['seconds'] / plain['seconds']:.2f} times the time"
    )
    return Part(f"1 B parameters, {int(tokens):,} tokens, one H200", verdict, figure, time)


def _small(tables: Tables) -> Part:
    texts = []
    for place, heading in PLACES.items():
        rows = table(tables.docs / PAGE, heading)
        row = rows[rows["one update"].str.strip("*") == ROW].iloc[0]
        texts.append(f"{row['time'].strip('*')} times the time and {row['memory']} times the memory with {place}")
    return Part("smaller models, on a CPU", "cannot be tested here", "; ".join(texts))


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
    pages=(PAGE, GPU),
)
