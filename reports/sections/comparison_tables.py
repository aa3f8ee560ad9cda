"""The tables of the comparison: ranking, paired differences, targets, stable learning rates, ablation, cost."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.formatting import MISSING
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.scores import at_rate, scale, was_chosen
from vcpo_bench.reports.sections.analysis_blocks import Layout, Shown, analysis_table
from vcpo_bench.reports.study import Study

_LAG = Shown("lag", "name")
_METHOD = Shown("method", "name")
_TASK = Shown("task", "name")

_RANKING = {
    "staleness": _LAG,
    "method": _METHOD,
    "runs": Shown("runs", "count"),
    "collapsed": Shown("collapsed", "count"),
    "iqm": Shown("interquartile mean [95%]", interval="own"),
    "mean": Shown("mean [95%]", interval="own"),
    "optimality_gap": Shown("optimality gap [95%]", interval="own"),
}
_BY_TASK = {
    "staleness": _LAG,
    "task": _TASK,
    "method": _METHOD,
    "seeds": Shown("runs", "count"),
    "collapsed": Shown("collapsed", "count"),
    "mean": Shown("mean [95%]", interval="plain"),
}
_PAIRS = {
    "staleness": _LAG,
    "first": Shown("first", "name"),
    "second": Shown("second", "name"),
    "estimate": Shown("first minus second [95%]", interval="plain"),
    "p": Shown("p", "p"),
    "p_exact": Shown("p, sign flips", "p"),
    "p_holm": Shown("p, Holm", "p"),
    "pairs": Shown("pairs", "count"),
}
_CHOICES = {
    "task": _TASK,
    "staleness": _LAG,
    "method": _METHOD,
    "tested_half": Shown("tested half", "name"),
    "chosen_lr": Shown("chosen lr", "rate"),
    "tuning_seeds": Shown("tuning seeds", "count"),
    "tuning_score": Shown("tuning score"),
}
_TARGETS = {
    "staleness": _LAG,
    "method": _METHOD,
    "target": Shown("target", "name"),
    "reached": Shown("reached", "count"),
    "total": Shown("of", "count"),
    "median_updates": Shown("median updates", "count"),
    "median_seconds": Shown("median seconds", digits=0),
    "mean_updates": Shown("mean updates [95%]", digits=0, interval="own"),
}
_NON_INFERIORITY = {
    "task": _TASK,
    "staleness": _LAG,
    "method": _METHOD,
    "share": Shown("share of the gain", "name"),
    "reached": Shown("reached", "count"),
    "total": Shown("of", "count"),
    "updates": Shown("mean updates", "count"),
    "trajectories": Shown("trajectories", "count"),
    "seconds": Shown("seconds", digits=0),
    "updates_ratio": Shown("times sooner, updates [95%]", digits=2, interval="own"),
    "seconds_ratio": Shown("times sooner, seconds [95%]", digits=2, interval="own"),
}
_STABLE = {
    "task": _TASK,
    "regime": Shown("regime", "name"),
    "method": _METHOD,
    "staleness": _LAG,
    "stable_rate": Shown("largest stable lr", "rate"),
    "next_rate": Shown("smallest unstable lr", "rate"),
    "collapsed": Shown("collapsed there", "count"),
    "total": Shown("of", "count"),
    "reading": Shown("reading", "name"),
}
_FRONTIER = {
    "method": _METHOD,
    "cells": Shown("runs", "count"),
    "collapsed": Shown("collapsed", "count"),
    "exponent": Shown("exponent a in lr ~ lag^-a [95%]", interval="plain"),
    "reason": Shown("why not", "name"),
}
_ABLATION = {
    "family": Shown("family", "name"),
    "staleness": _LAG,
    "at": Shown("at", "name"),
    "effect": Shown("effect", "name"),
    "estimate": Shown("estimate [95%]", interval="plain"),
    "p": Shown("p", "p"),
    "pairs": Shown("pairs", "count"),
}
_CONTROLS = {
    "method": _METHOD,
    "control": Shown("control", "name"),
    "staleness": _LAG,
    "estimate": Shown("method minus control [95%]", interval="plain"),
    "p": Shown("p", "p"),
    "pairs": Shown("pairs", "count"),
}
_COST = {
    "task": _TASK,
    "method": _METHOD,
    "cells": Shown("cells", "count"),
    "milliseconds": Shown("ms per update", digits=1),
    "base": Shown("compared with", "name"),
    "added": Shown("added, ms [95%]", digits=1, interval="plain"),
}

BASELINE = "baseline"
"""What the table of costs says of a method that others are compared with."""

ALL_TASKS = "all tasks"
"""What the ranking says in the place of a task where tasks are pooled."""

_BOOTSTRAP = "95% intervals: bootstrap over seeds, stratified by task"
_OVER_PAIRS = "95% intervals: Student t over pairs of the same task, lag and seed, averaged where a seed has several."
_ALL = (
    Layout("ranking", "", _RANKING),
    Layout("pairs", "Paired differences of scores. Holm's correction is per lag.", _PAIRS, intervals=_OVER_PAIRS),
    Layout("choices", "The learning rate each half of the seeds was tested at, chosen on the other half.", _CHOICES),
    Layout(
        "targets",
        "Updates and training seconds until a share (target) of the synchronous gain is reached. "
        "Medians are of Kaplan-Meier curves. The mean is restricted to the shortest budget.",
        _TARGETS,
        intervals="95% Greenwood interval, none where all runs agree.",
    ),
    Layout(
        "non_inferiority",
        "Time to non-inferiority: until a run is within 10% and 5% of the gain of the best synchronous training, and "
        "how many times sooner than that training got there. A run that does not arrive counts with its whole budget.",
        _NON_INFERIORITY,
        intervals="95% intervals: bootstrap over seeds, together where both have the same.",
    ),
    Layout("stable_rates", "The largest learning rate up to which fewer than a third of the seeds fail.", _STABLE),
    Layout(
        "frontier",
        "How the largest stable learning rate falls with lag: an exponent of 1 means inversely proportional.",
        _FRONTIER,
        intervals="95% likelihood intervals.",
    ),
    Layout(
        "ablation",
        "What each half of a method adds, with the other half off and on.",
        _ABLATION,
        intervals=_OVER_PAIRS,
    ),
    Layout(
        "step_controls",
        "Step scaling by ESS against steps of the same sizes at other times, or of their mean.",
        _CONTROLS,
        intervals=_OVER_PAIRS,
    ),
    Layout(
        "cost",
        "Time of an update (scoring and learning), and its difference to the cheaper method named (baseline: "
        "others are compared with it).",
        _COST,
        intervals="95% intervals: Student t over pairs of the same task, lag, learning rate and seed.",
    ),
)
_COST_ALONE = Layout("cost", "Time of an update (scoring and learning).", dict(list(_COST.items())[:4]))
"""Of methods of which none is compared with another."""
_LAYOUTS = {one.table: one for one in _ALL}
"""Caption and columns of each table."""

_ABOUT_RATES = ("choices", "frontier")
"""Tables that say nothing when a single learning rate was run."""

_IN_ORDER = ("stable_rates", "choices", "targets", "non_inferiority")
"""Tables sorted by their first columns; the others keep the order of `analysis`, best first."""


def comparison_tables(study: Study, ledger: Ledger, *names: str) -> list[Table]:
    """The named tables of the comparison that are not empty."""
    tables: list[Table] = []
    several = study.cells["lr"].nunique() > 1
    for name in names:
        if name in _ABOUT_RATES and not several:
            continue
        frame, layout = study.findings("compare").tables[name], _layout(study, name)
        if name == "cost":
            frame = _baselines_named(frame) if frame["milliseconds"].notna().any() else frame.iloc[:0]
            layout = _COST_ALONE if frame["base"].eq(MISSING).all() else layout
        if name == "non_inferiority":
            frame = _of_runs_that_arrive(frame)
        if frame.empty:  # one seed leaves no other on which a rate could be chosen
            continue
        if name in _IN_ORDER:
            frame = frame.sort_values(list(layout.named[:3]))
        found = analysis_table(study, ledger, "compare", layout, frame)
        tables += [_by_task(study, ledger, one) for one in found] if name == "ranking" else found
    return tables


def _by_task(study: Study, ledger: Ledger, ranking: Table) -> Table:
    """The ranking with the rows of each task below those of all tasks at the same lag; of one task as it is."""
    frame = study.findings("compare").tables["by_task"]
    if frame["task"].nunique() < 2:
        return ranking
    frame = frame.sort_values(["staleness", "task", "mean"], ascending=[True, True, False], kind="stable")
    (tasks,) = analysis_table(study, ledger, "compare", Layout("by_task", "", _BY_TASK), frame)
    pooled = [[lag, TableCell(ALL_TASKS), *rest] for lag, *rest in ranking.rows]
    iqm, gap = (list(_RANKING).index(name) + 1 for name in ("iqm", "optimality_gap"))
    single = [[*row[:iqm], TableCell(MISSING), *row[iqm:gap], TableCell(MISSING)] for row in tasks.rows]
    lags = list(dict.fromkeys(row[0].text for row in pooled))
    rows = [row for lag in lags for row in (*pooled, *single) if row[0].text == lag]
    headings = [ranking.headings[0], _TASK.heading, *ranking.headings[1:]]
    caption = f"{ranking.caption} By task: mean over its runs, with a 95% Student-t interval where there are several."
    return Table(ranking.name, caption, headings, rows, frozenset(range(3, len(headings))), settings=3)


def _layout(study: Study, name: str) -> Layout:
    """How a table is shown in the report of a study."""
    layout = _LAYOUTS[name]
    if name == "stable_rates" and study.cells["regime"].nunique() == 1:
        return replace(layout, columns={one: shown for one, shown in layout.columns.items() if one != "regime"})
    if name == "pairs" and was_chosen(study):
        return replace(layout, caption=layout.caption.replace("scores", "scores at best learning rates"))
    if name == "ranking":
        widened = ", widened for the choice of learning rates" if was_chosen(study) else ""
        few = study.findings("compare").tables["ranking"]["seeds"].lt(ENOUGH).any()
        narrow = f"; with fewer than {ENOUGH} seeds per task they are too narrow" if few else ""
        caption = f"Methods, each at {at_rate(study)}. {scale(study)}"
        return replace(layout, caption=caption, intervals=f"{_BOOTSTRAP}{widened}{narrow}.")
    return layout


def _of_runs_that_arrive(times: pd.DataFrame) -> pd.DataFrame:
    """The table of times without ratios where no run arrives: they would compare a budget with a time."""
    ratios = [str(name) for name in times if "_ratio" in str(name)]
    return times.assign(**{name: times[name].where(times["reached"] > 0) for name in ratios})


def _baselines_named(cost: pd.DataFrame) -> pd.DataFrame:
    """The table of costs in which no method is compared with itself or one that did not run.

    It is a baseline of others, or stands alone.
    """
    ran, named = (pd.MultiIndex.from_frame(cost[["task", one]]) for one in ("method", "base"))
    itself = cost["base"] == cost["method"]
    others = ran.isin(named[~itself])
    base = cost["base"].mask(itself & others, BASELINE).mask(itself & ~others | ~named.isin(ran), MISSING)
    return cost.assign(base=base)
