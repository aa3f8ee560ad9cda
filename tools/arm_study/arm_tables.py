"""One row per run of a study of arms, and comparisons paired by seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from arm_study.arms import Arm
from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.intervals import t_interval
from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.grid import plan_grid

PLACE = ["arm", "task", "method", "staleness", "seed"]
LAST = 3
"""Evaluations whose mean is the final reward."""


def run_table(out: Path, arms: Sequence[Arm], columns: Sequence[str], since: int) -> pd.DataFrame:
    """One row per run: where, how it ended, what it earned, and means of columns over its updates from `since` on.

    Args:
        out: Folder with the results folders.
        arms: Of the study.
        columns: Of `steps.parquet`.
        since: First update that counts.

    Raises:
        RuntimeError: Runs are missing or ended in an error: the study is not complete.
    """
    tables = []
    for arm in arms:
        loaded = load(out / arm.name)
        table = events(loaded)
        if len(table) != len(plan_grid(arm.spec)) or not table["status"].isin(["completed", "nan"]).all():
            raise RuntimeError(f"arm {arm.name} is not complete: run tools/*_study/run.py {out} again")
        steps = loaded.steps[loaded.steps["step"] >= since].groupby("key")[list(columns)].mean()
        curves = loaded.evals.sort_values("step").groupby("key")["sampled_reward"]
        table = table.assign(arm=arm.name, final_reward=table["key"].map(curves.apply(lambda c: c.tail(LAST).mean())))
        tables.append(table.join(steps, on="key"))
    found = pd.concat(tables)[[*PLACE, "event", "failed", *columns, "final_reward"]]
    return found.sort_values(PLACE).reset_index(drop=True)


def paired(
    runs: pd.DataFrame,
    pair: tuple[object, object],
    column: str,
    side: str = "arm",
    by: Sequence[str] = ("task", "staleness"),
    ratio: bool = False,
) -> pd.DataFrame:
    """One side of a factor against another, run by run: means within a seed, t interval over seeds.

    Args:
        runs: Of `run_table`.
        pair: Two values of the factor: the first minus, or over, the second.
        column: What is compared.
        side: The factor, one of `PLACE`.
        by: Which comparisons are kept apart; runs that differ in anything else are averaged within a seed.
        ratio: Quotients, as means of logarithms, instead of differences.

    Returns:
        Columns `by`, `seeds`, `value`, `low`, `high` (95%), `low90`, `high90`.
    """
    keys = [name for name in PLACE if name not in (side, *(["arm"] if runs["arm"].nunique() == 1 else []))]
    left, right = (runs[runs[side] == value].set_index(keys)[column].astype(float) for value in pair)
    left, right = left.align(right, join="inner")
    each = ((left / right).apply(np.log) if ratio else left - right).rename("value").reset_index()
    rows = []
    for place, group in each.groupby(list(by), sort=False):
        values = group.groupby("seed")["value"].mean()
        numbers = np.array([values.mean(), *t_interval(values), *t_interval(values, 0.9)])
        shown = np.exp(numbers) if ratio else numbers
        names = ("value", "low", "high", "low90", "high90")
        rows.append(dict(zip(by, place, strict=True)) | {"seeds": len(values)} | dict(zip(names, shown, strict=True)))
    return pd.DataFrame(rows)


def means(runs: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Means of columns over runs, with their number and how many failed."""
    grouped = runs.groupby(list(by), sort=False)
    table = grouped[list(columns)].mean().assign(runs=grouped.size(), failed=grouped["failed"].sum())
    return table.reset_index()
