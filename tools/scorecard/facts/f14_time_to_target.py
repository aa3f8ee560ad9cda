"""Fact 14: by time to target synchronous training wins, which tables at equal steps hide."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scorecard.fact import Fact, Part
from scorecard.facts.f02_large_lag import STEPS, SWEEP, speeds
from scorecard.markdown import numbers, table
from scorecard.rules import SEEDS, above, mean_above, number
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import t_interval

PAGE = "benchmarks/async.md"
HEADING = "## Against both synchronous baselines, nothing emulated"
COLOCATED, ASYNC = "(b) colocated, data-parallel", "async, k = 4"
LAG = 16


def judge(tables: Tables) -> list[Part]:
    """Updates to target in the sweep of fact 2; seconds to target of real processes, from that page."""
    wide = speeds(tables).pivot(index="seed", columns="staleness", values="updates")
    ratio = np.log2(wide[LAG] / wide[0])
    text = "log2 of updates to target over those of k = 0: {}"
    if late := int((wide[LAG] >= STEPS).sum()):
        text += f", at least: {late} of {len(wide)} runs at k = {LAG} do not arrive within {STEPS} and count as {STEPS}"
    updates = mean_above(f"updates, k = {LAG}", text, ratio)
    rows = pd.DataFrame(timings(tables).xs("vcpo", level="method"))
    return [updates, *(_seconds(str(task), own.droplevel("task")) for task, own in rows.groupby(level="task"))]


def _seconds(task: str, rows: pd.DataFrame) -> Part:
    ratio = np.log2(np.array(rows.loc[ASYNC, "seconds"]) / np.array(rows.loc[COLOCATED, "seconds"]))
    low, high = t_interval(ratio)
    figure = f"log2 of seconds to target, k = 4 over colocated synchronous: {number(float(ratio.mean()), low, high)}"
    return Part(f"seconds, {task}", above(low, high), figure, float(ratio.mean()), low, high, SEEDS)


def timings(tables: Tables) -> pd.DataFrame:
    """The first table of the page by method, task and way: lists over seeds of `rate`, `updates` and `seconds`."""
    rows = table(tables.docs / PAGE, HEADING)
    names = rows["method, task"].str.split(", ", expand=True)
    columns = {"rate": "updates/s", "updates": "updates to target", "seconds": "seconds to target"}
    lists = {name: rows[column].map(numbers) for name, column in columns.items()}
    index = pd.MultiIndex.from_arrays([names[0], names[1], rows["way"]], names=["method", "task", "way"])
    return pd.DataFrame({name: list(values) for name, values in lists.items()}, index=index)


FACT = Fact(
    number=14,
    title="Synchronous wins in time to target",
    order=21,
    statement=(
        "By time to target synchronous training wins Countdown (38% at step 110 against 400), which tables at equal "
        "steps hide."
    ),
    source="read off the results figure of VCPO (2602.17616), an inference of this project",
    rule=(
        "Runs of fact 2: updates to 90% of the synchronous gain at k = 16 over those at k = 0, paired by seed, are "
        "more (reproduced) or fewer (refuted), t interval of the logarithm. The page of the asynchronous benchmark "
        "(rules 1.0), `vcpo`, per task: seconds to target at k = 4 over colocated synchronous training are more "
        "(reproduced: synchronous wins) or fewer (refuted)."
    ),
    judge=judge,
    blocks=(SWEEP,),
    pages=(PAGE,),
)
