"""Fact 6: a run can recover by itself after a collapse."""

from __future__ import annotations

from scorecard import panel
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import RUNS
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import wilson

RARE = 0.2


def judge(tables: Tables) -> list[Part]:
    """One part per task: what falls within 300 updates, seen for 600."""
    return [_part(task, tables) for task in panel.RATES]


def _part(task: str, tables: Tables) -> Part:
    first = tables.outcomes(panel.long_runs(task)).set_index("run")
    later = tables.outcomes(panel.long_runs(task), until=panel.TWICE).set_index("run")
    fell = first.index[first["failed"]]
    early = int((first.loc[fell, "event"] == "collapse with rebound").sum())
    late = int((later.loc[fell, "event"] == "collapse with rebound").sum())
    if not len(fell):
        return Part(task, "undecided", "no run fell by update 300")
    low, high = wilson(late, len(fell))
    text = f"{late} of {len(fell)} [{low:.2f}, {high:.2f}]"
    figure = f"falls by update 300 that had rebounded by update 600: {text}; by update 300 already {early}"
    verdict: Verdict = "reproduced" if late else "refuted" if high < RARE else "undecided"
    return Part(task, verdict, figure, late / len(fell), low, high, RUNS)


FACT = Fact(
    number=6,
    order=14,
    statement="A collapsed run recovers by itself with more training (TIS on MATH: 1% at step 250, 65% at 370).",
    source="VCPO (2602.17616), results figure",
    rule=(
        "`reinforce` and `tis` of fact 1, trained for 600 updates. Of the runs that fall within 300 updates, at least "
        "one is not down at update 600 (`collapse with rebound` of the written rule): reproduced, with their share. "
        "None, and the Wilson interval of the share lies below 0.2: refuted."
    ),
    judge=judge,
    blocks=tuple(panel.long_runs(task) for task in panel.RATES),
)
