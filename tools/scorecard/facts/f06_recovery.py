"""Fact 6: a run can recover by itself after a collapse."""

from __future__ import annotations

import numpy as np
import pandas as pd
from phase_study.tables import counted

from scorecard import panel
from scorecard.before_lag import total
from scorecard.fact import Fact, Part, Verdict
from scorecard.recoveries import REBOUND, recoveries
from scorecard.rules import RUNS
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import wilson

RARE = 0.2
ELSEWHERE = "studies/phase/runs.csv"


def judge(tables: Tables) -> list[Part]:
    """One part per task: what fails within 300 updates, seen for 600."""
    return [_part(task, tables) for task in panel.RATES]


def _part(task: str, tables: Tables) -> Part:
    first = tables.outcomes(panel.long_runs(task)).set_index("run")
    later = tables.outcomes(panel.long_runs(task), until=panel.TWICE).set_index("run")
    fell = first.index[first["failed"]]
    early = int((first.loc[fell, "event"] == REBOUND).sum())
    late = int((later.loc[fell, "event"] == REBOUND).sum())
    if not len(fell):
        return Part(task, "undecided", "no run failed by update 300")
    low, high = wilson(late, len(fell))
    text = f"{late} of {len(fell)} [{low:.2f}, {high:.2f}]"
    figure = f"runs failed by update 300 that had rebounded by update 600: {text}; by update 300 already {early}"
    figure += elsewhere(tables, task)
    verdict: Verdict = "reproduced" if late else "refuted" if high < RARE else "undecided"
    return Part(task, verdict, figure, late / len(fell), low, high, RUNS)


def elsewhere(tables: Tables, task: str) -> str:
    """What complete seeds of the phase study saw of the same, within 300 updates; it judges nothing.

    The lag and learning rate that are judged here are left out.
    """
    if not tables.page_exists(ELSEWHERE):
        return ""
    runs = counted(pd.read_csv(tables.docs / ELSEWHERE))
    here = (runs["staleness"] == panel.LAG) & np.isclose(runs["lr"], panel.RATES[task])
    failed = runs[(runs["task"] == task) & runs["failed"].astype(bool) & ~here]
    back = failed[failed["event"] == REBOUND]
    where = "in the phase study, at other lags or learning rates"
    text = f". Elsewhere: {where}, {len(back)} of {len(failed)} failed runs on {task} rebounded by update 300"
    own = back[back["method"] == panel.TIS]
    if own.empty:
        return f"{text}, none of them `{panel.TIS}`"
    first = own.iloc[0]
    where = f"lag {first['staleness']}, learning rate {first['lr']:g}, seed {first['seed']}"
    return f"{text}, {len(own)} of them `{panel.TIS}` (such as {where})"


def note(tables: Tables) -> str:
    """How many failures came before their lag was reached, and how often runs recover at other learning rates."""
    early = total(tables, *(panel.long_runs(task) for task in panel.RATES))
    return early + recoveries(tables)


FACT = Fact(
    number=6,
    title="A collapsed run recovers by itself",
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
    note=note,
)
