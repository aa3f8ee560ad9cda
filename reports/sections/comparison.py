"""The tables of the comparison: ranking at best rates, paired differences, targets, stable rates, ablation, cost."""

from __future__ import annotations

from vcpo_bench.reports.document import Table
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.analysis_blocks import Shown, judged_table
from vcpo_bench.reports.study import Study

_LAG = Shown("lag", "name")
_METHOD = Shown("method", "name")
_TASK = Shown("task", "name")

_RANKING = {
    "staleness": _LAG,
    "method": _METHOD,
    "runs": Shown("runs", "count"),
    "failed": Shown("failed", "count"),
    "iqm": Shown("interquartile mean [95%]", interval="own"),
    "mean": Shown("mean [95%]", interval="own"),
    "optimality_gap": Shown("optimality gap [95%]", interval="own"),
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
_STABLE = {
    "task": _TASK,
    "method": _METHOD,
    "staleness": _LAG,
    "stable_rate": Shown("largest stable lr", "rate"),
    "next_rate": Shown("smallest unstable lr", "rate"),
    "failed": Shown("failed there", "count"),
    "total": Shown("of", "count"),
    "reading": Shown("reading", "name"),
}
_FRONTIER = {
    "method": _METHOD,
    "cells": Shown("runs", "count"),
    "failed": Shown("failed", "count"),
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

_SCORE = "Rewards are normalized: 0 is the start policy, 1 the best synchronous training, where there is one."
_SHOWN = {
    "ranking": (_RANKING, f"Methods at their best learning rate, tuned on other seeds than those tested. {_SCORE}"),
    "pairs": (
        _PAIRS,
        "Paired differences of scores at best rates: same task, lag and seed. Holm adjusts within a lag.",
    ),
    "choices": (_CHOICES, "The learning rate each half of the seeds was tested at, chosen on the other half."),
    "targets": (_TARGETS, "Updates and training seconds until a share (target) of the synchronous gain is reached."),
    "stable_rates": (_STABLE, "The largest learning rate up to which fewer than a third of the seeds fail."),
    "frontier": (_FRONTIER, "How the stable learning rate falls with the lag: 1 means it is inversely proportional."),
    "ablation": (_ABLATION, "What the parts of a method add, each with the other switched off and on."),
    "step_controls": (_CONTROLS, "Scaling the step by ESS against the same steps at other times, or their mean."),
    "cost": (_COST, "Time of an update (scoring and learning), and what it adds over the cheaper method beside it."),
}


_ABOUT_RATES = ("choices", "frontier")
"""Tables that say nothing when a single learning rate was run."""

_IN_ORDER = ("stable_rates", "choices", "targets")
"""Tables sorted by their first columns; the others keep the order of `analysis`, best first."""


def compared(study: Study, ledger: Ledger, *names: str) -> list[Table]:
    """The named tables of the comparison that are not empty."""
    tables = []
    tuned = study.cells["lr"].nunique() > 1
    for name in names:
        if name in _ABOUT_RATES and not tuned:
            continue
        columns, caption = _SHOWN[name]
        frame = study.comparison.tables[name]
        if name in _IN_ORDER:
            frame = frame.sort_values([column for column, shown in columns.items() if shown.kind == "name"][:3])
        table = judged_table(study, ledger, name, frame, caption, columns)
        if table is not None:
            tables.append(table)
    return tables
