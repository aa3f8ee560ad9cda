"""Fact 1: at lag 10 to 12 no correction and sequence TIS die, VCPO at the same lag and rate does not."""

from __future__ import annotations

import pandas as pd

from scorecard import panel
from scorecard.before_lag import each
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import RUNS
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import wilson

DIE, LIVE, SYNC_LOST = 0.5, 0.1, 1


def judge(tables: Tables) -> list[Part]:
    """One part per task."""
    return [_part(task, tables) for task in panel.RATES]


def _part(task: str, tables: Tables) -> Part:
    lagged = tables.outcomes(panel.long_runs(task), panel.vcpo(task))
    sync = tables.outcomes(panel.synchronous(task))
    lost, of, reinforce = (_lost(lagged, method) for method in (panel.TIS, panel.VCPO, "reinforce"))
    sync_lost, sync_runs = _lost(sync, "reinforce")
    tis_low, tis_high = wilson(*lost)
    vcpo_low, vcpo_high = wilson(*of)
    figure = (
        f"failed at lag {panel.LAG}: tis {lost[0]} of {lost[1]} [{tis_low:.2f}, {tis_high:.2f}], vcpo {of[0]} of "
        f"{of[1]} [{vcpo_low:.2f}, {vcpo_high:.2f}], reinforce {reinforce[0]} of {reinforce[1]}; at lag 0 {sync_lost} "
        f"of {sync_runs}"
    )
    verdict: Verdict = "undecided"
    if sync_lost > SYNC_LOST:
        figure += "; the learning rate is no healthy one without lag"
    elif tis_high < DIE or vcpo_low > LIVE:
        verdict = "refuted"
    elif lost[0] >= DIE * lost[1] and of[0] <= LIVE * of[1] and tis_low > vcpo_high:
        verdict = "reproduced"
    share = lost[0] / lost[1] - of[0] / of[1]
    return Part(f"{task}, learning rate {panel.RATES[task]:g}", verdict, figure, share, unit=RUNS)


def _lost(table: pd.DataFrame, method: str) -> tuple[int, int]:
    own = table[table["method"] == method]
    return int(own["failed"].sum()), len(own)


def note(tables: Tables) -> str:
    """Which failures came before their lag was reached."""
    return each(tables, *(panel.long_runs(task) for task in panel.RATES))


FACT = Fact(
    number=1,
    title="TIS fails at lag 10 to 12 and VCPO does not",
    order=10,
    statement="Uncorrected and sequence-TIS (cap 8) runs die at lag 10 to 12; VCPO at the same lag and rate does not.",
    source="VCPO (2602.17616), results figure and section 3.1",
    rule=(
        "Reproduced: at most 1 of 8 synchronous runs is lost, at least half of `tis` and at most a tenth of `vcpo` "
        "are, and their Wilson intervals are disjoint. Refuted: the synchronous runs are healthy, and the interval of "
        "`tis` lies below 0.5 or that of `vcpo` above 0.1. Undecided where more synchronous runs are lost: then it is "
        "the rate."
    ),
    judge=judge,
    blocks=tuple(make(task) for task in panel.RATES for make in (panel.long_runs, panel.synchronous, panel.vcpo)),
    note=note,
)
