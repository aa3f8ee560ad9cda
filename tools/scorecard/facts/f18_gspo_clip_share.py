"""Fact 18: near on-policy GSPO clips about 15% of tokens, and token clipping about 0.1%."""

from __future__ import annotations

from scorecard.cells import FOUR, Block
from scorecard.fact import Fact, Part
from scorecard.rules import mean_within
from scorecard.tables import Tables

BOUNDS = {"gspo": (0.05, 0.30), "clip": (0.0, 0.01)}
PLACES = {task: Block(tuple(BOUNDS), task, (1,), 4e-4, seeds=FOUR, steps=100) for task in ("walk", "chain")}


def judge(tables: Tables) -> list[Part]:
    """One part per task and method: mean share of clipped tokens at lag 1."""
    return [_part(task, method, tables) for task in PLACES for method in BOUNDS]


def _part(task: str, method: str, tables: Tables) -> Part:
    runs = tables.outcomes(PLACES[task], until=100)
    own = runs.loc[runs["method"].str.startswith(method), "run"]
    shares = [tables.signals(run).iloc[1:]["share_clipped"].mean() for run in own]
    return mean_within(f"{method} on {task}", "mean share of clipped tokens at lag 1: {}", shares, *BOUNDS[method])


FACT = Fact(
    number=18,
    title="Share of clipped tokens of GSPO and GRPO",
    order=34,
    statement="Near on-policy GSPO clips about 15% of tokens and GRPO's token clipping about 0.1%.",
    source="GSPO (2507.18071), clip-fraction figure",
    rule=(
        "`gspo` with its published bounds and `clip` at lag 1, 4e-4, 100 updates, `walk` and `chain`. The mean share "
        "lies within 5 to 30% for gspo and 0 to 1% for clip (reproduced) or outside (refuted), t intervals over 4 "
        "seeds. Responses are short here, which is what the bounds are sensitive to."
    ),
    judge=judge,
    blocks=tuple(PLACES.values()),
    signals=True,
)
