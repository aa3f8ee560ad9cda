"""Fact 24: a collapse by truncation at healthy ESS exists."""

from __future__ import annotations

import pandas as pd

from scorecard.cells import Block
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import RUNS
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import wilson

HIGH_RATES = tuple(Block(("reinforce", "clip"), "walk-eos", (1,), rate) for rate in (8e-4, 1.6e-3))
HEALTHY_ESS, LONG, MOST = 0.9, 20.0, 0.25


def judge(tables: Tables) -> list[Part]:
    """How many lost runs had a healthy ESS until the fall, and long responses after it."""
    runs = tables.outcomes(*HIGH_RATES)
    lost = runs[runs["failed"]]
    facts = pd.DataFrame([_facts(tables, run, onset) for run, onset in zip(lost["run"], lost["onset"], strict=True)])
    if facts.empty:
        return [Part("walk-eos, lag 1", "undecided", f"0 of {len(runs)} runs failed")]
    blind = facts["ess"] > HEALTHY_ESS
    count = int((blind & (facts["length"] >= LONG)).sum())
    low, high = wilson(count, len(lost))
    verdict: Verdict = "reproduced" if count else "refuted" if high < MOST else "undecided"
    figure = (
        f"{count} of {len(lost)} failed runs [{low:.2f}, {high:.2f}] had an ESS ratio above {HEALTHY_ESS} at every "
        f"update before the fall and {LONG:g} of 24 tokens after it; {int(blind.sum())} with any length; lowest ESS "
        f"before the fall, median {facts['ess'].median():.2f}"
    )
    return [Part("walk-eos, lag 1", verdict, figure, count / len(lost), low, high, RUNS)]


def _facts(tables: Tables, run: int, onset: float) -> dict[str, float]:
    updates = tables.signals(run)
    before, after = updates[updates["step"] < onset], updates[updates["step"] >= onset]
    return {"ess": float(before["ess_ratio"].min()), "length": float(after["length_mean"].mean())}


FACT = Fact(
    number=24,
    title="A collapse at healthy ESS",
    order=22,
    statement=(
        "A collapse at healthy ESS exists: PPO at age of at most 1, 98% of responses truncated, lowest ESS fraction "
        ".989."
    ),
    source="marin issue 8955",
    rule=(
        "`reinforce` and `clip` on `walk-eos` (at most 24 tokens, no reward without an end) at lag 1, 8e-4 and "
        "1.6e-3. Reproduced: at least one lost run with ESS above 0.9 at every update before the fall and a mean "
        "length of at least 20 after it. Refuted: none, and the Wilson interval of their share lies below 0.25."
    ),
    judge=judge,
    blocks=HIGH_RATES,
    signals=True,
)
