"""From a results folder to the table that ships: one row per run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.grid import PlannedCell

from .study import Study

RUNS = "runs.csv"
LAST = 2
"""Evaluations whose mean is the final reward."""


def run_table(study: Study, results: Path) -> pd.DataFrame:
    """The runs of a study that have ended, sorted by place.

    Args:
        study: Whose runs; others in the folder are left out.
        results: Its results folder.

    Returns:
        Columns `study.place`, `status`, `event`, `failed`, `onset`, `start_reward`, `final_reward`, `study.quantities`.
    """
    loaded = load(results)
    table = events(loaded)
    table = table[table["key"].isin(study.cells())].copy()
    curves = loaded.evals.sort_values("step").groupby("key")["sampled_reward"]
    table["start_reward"] = table["key"].map(curves.first())
    table["final_reward"] = table["key"].map(curves.apply(lambda curve: curve.tail(LAST).mean()))
    settled = loaded.steps[~loaded.steps["filling"].astype(bool)].groupby("key")
    for name, column in study.quantities.items():
        table[name] = table["key"].map(settled[column].mean())
    table.loc[table["status"] == "error", ["start_reward", "final_reward", *study.quantities]] = np.nan
    kept = [*study.place, "status", "event", "failed", "onset", "start_reward", "final_reward", *study.quantities]
    return table[kept].sort_values([*study.place], kind="stable").reset_index(drop=True)


def shipped(study: Study) -> pd.DataFrame:
    """The runs that ship with a study; none where there is no table yet."""
    path = study.folder / RUNS
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=[*study.place])


def joined(study: Study, old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The runs of two tables of a study; where both have a run, that of the second."""
    place = [*study.place]
    both = pd.concat([one for one in (old, new) if len(one)] or [old], ignore_index=True)
    return both.drop_duplicates(place, keep="last").sort_values(place, kind="stable").reset_index(drop=True)


def lacking(study: Study, runs: pd.DataFrame) -> list[PlannedCell]:
    """The cells of a study whose runs are not in a table."""
    known = set(runs[[*study.place]].itertuples(index=False, name=None))
    cells = study.cells().values()
    return [cell for cell in cells if tuple(getattr(cell.config, name) for name in study.place) not in known]


def whole(study: Study, runs: pd.DataFrame) -> bool:
    """Whether every run of the study is there."""
    return len(runs) == len(study.cells())
