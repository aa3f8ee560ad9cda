"""One number per run, made comparable between tasks: the start policy is 0, the best synchronous training is 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.comparability import BUDGET, DEFAULTS
from vcpo_bench.analysis.final_reward import final_rewards
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.tolerance import EQUAL

RAW = "score"
"""Column with the rewards as they are, for where tasks cannot be normalized."""

SMALLEST_RANGE = 0.05
"""A task whose best synchronous training gains less than this cannot be normalized."""

CELL = ["task", "method", "regime", "staleness", "lr", "seed"]
"""What identifies a run among comparable ones; within one of everything but the method, runs are paired."""


@dataclass(frozen=True)
class NormalizedRewards:
    """One score per cell.

    Attributes:
        table: One row per cell: `CELL` (`task` as `task_names` writes it), `key`, `control`, `status`, `event`,
            `onset`, `collapsed`, `last_step`, `start`, `score` (`analysis.final_reward`; NaN
            for a cell that ended in an error) and `normalized`: `(score - start) / (sync - start)` of its task.
        anchors: One row per task: `start`, `sync`, `sync_method`, `sync_lr`, `sync_seeds`, `sync_at_edge` (several
            learning rates were tried and the best is the smallest or the largest of them), and `usable`.
    """

    table: pd.DataFrame
    anchors: pd.DataFrame


def normalize(results: Results) -> NormalizedRewards:
    """Score every cell by its last evaluations, those that ended as nan or were stopped too."""
    verdicts = events(results)
    evals = results.evals.sort_values(["key", "step"], kind="stable")
    last = final_rewards(evals)
    first = evals.groupby("key", sort=False)["sampled_reward"].first()
    final = verdicts["key"].map(last).astype("float64").mask(verdicts["status"] == "error")
    start = verdicts["key"].map(first).astype("float64")
    kept = ["key", *CELL, "control", "status", "event", "onset", "collapsed", "last_step"]
    table = verdicts[kept].assign(start=start, score=final, task=task_names(verdicts))
    anchors = _anchors(table)
    by_task = anchors.set_index("task")
    low, high = table["task"].map(by_task["start"]), table["task"].map(by_task["sync"])
    usable = table["task"].map(by_task["usable"]).astype(bool)
    table["normalized"] = ((table["score"] - low) / (high - low).where(usable)).astype("float64")
    return NormalizedRewards(table, anchors)


def task_names(cells: pd.DataFrame) -> pd.Series:
    """The task of each cell, with the settings that decide what can be reached wherever cells differ in them.

    Such as `chain, steps 600`: runs of another length or batch are no anchor, no pair and no rival for these.
    """
    names = cells["task"].astype(str)
    for setting in BUDGET:
        values = cells.get(setting, pd.Series(DEFAULTS[setting], cells.index))
        values = values.astype(object).where(values.notna(), DEFAULTS[setting])
        if values.nunique() > 1:
            names = names + f", {setting} " + values.map(lambda value: str(value) or "none")
    return names


def score_column(rewards: NormalizedRewards) -> str:
    """`normalized` where every task has its anchors, else the raw `score`."""
    return "normalized" if all_usable(rewards.anchors) else RAW


def all_usable(anchors: pd.DataFrame) -> bool:
    """Whether every task (a row of `NormalizedRewards.anchors`) has what its rewards are normalized by."""
    return bool(anchors["usable"].all())


def _anchors(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for task, cells in table.groupby("task", sort=False):
        start = float(cells["start"].mean())
        finished = cells["score"].notna() & (cells["status"] != "stopped_by")
        tried = cells.loc[cells["staleness"] == 0, "lr"]
        synchronous = cells[(cells["staleness"] == 0) & finished]
        means = synchronous.groupby(["method", "lr"])["score"].agg(["mean", "size"]).reset_index()
        row: dict[str, Any] = {"task": task, "start": start, "sync": np.nan, "sync_method": "", "sync_lr": np.nan}
        row |= {"sync_seeds": 0, "sync_at_edge": False}
        if len(means):
            best = means.sort_values("mean", kind="stable").iloc[-1]
            row |= {"sync": best["mean"], "sync_method": best["method"], "sync_lr": best["lr"]}
            row |= {"sync_seeds": int(best["size"]), "sync_at_edge": _at_edge(float(best["lr"]), tried)}
        rows.append(row | {"usable": bool(row["sync"] - start >= SMALLEST_RANGE - EQUAL)})
    return pd.DataFrame(rows)


def _at_edge(rate: float, tried: pd.Series) -> bool:
    return bool(tried.nunique() > 1 and rate in (tried.min(), tried.max()))
