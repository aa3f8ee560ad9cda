"""Realized lags and early failures per study, task and requested lag, from what ships with the studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from run_archives.archive import KEY, read

from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.records import LAGS_FILE

PLACE = ["study", "task", "asked"]
UPDATES = "updates"
ARCHIVES = (f"*/{UPDATES}/**/*.zip", f"*/second/{UPDATES}/*.zip")
RUNS = {"runs.csv": "", "again/cells.csv": "", "second/runs.csv": "/second"}
"""Tables of runs, and what the study's name ends with there: a second wave of seeds stands by itself."""


def table(studies: Path) -> pd.DataFrame:
    """One row per study, task and requested lag.

    Args:
        studies: Folder with a folder per study.

    Returns:
        Columns `study`, `task`, `asked` (updates), `archived` (runs whose updates ship); `mean`, `lowest` and `highest`
        realized lag of their trajectories from update `asked` on; `runs` in the study's table, `failed` of them, and
        `early`: failures whose onset is before update `asked`, so that the lag was not yet reached; `perhaps`: those
        that are not, but were last seen up before update `asked`. What a study does not ship is missing.
    """
    recorded = pd.DataFrame([row for path in archives(studies) for row in _of_archive(studies, path)])
    parts = [_realized(recorded)] if len(recorded) else []
    every = recorded.groupby("study")["every"].max() if len(recorded) else pd.Series(dtype=float)
    parts += [
        failures(name, pd.read_csv(path), int(every.get(name, CellSettings().eval_every)))
        for name, path in _with_onsets(studies).items()
    ]
    whole = pd.concat(parts).groupby(PLACE, as_index=False).first()
    return whole.sort_values(PLACE).reset_index(drop=True)


def archives(studies: Path) -> list[Path]:
    """Every archive whose runs the table has."""
    return sorted(path for pattern in ARCHIVES for path in studies.glob(pattern))


def _of_archive(studies: Path, path: Path) -> Iterator[dict[str, Any]]:
    """Sums over the trajectories of each run from the update on at which its lag is reached."""
    archive, parts = read(path), path.relative_to(studies).parts
    study = "/".join(parts[: parts.index(UPDATES)])
    facts = {cell[KEY]: cell["config"] for cell in archive.facts}
    lags = archive.tables[LAGS_FILE].to_pandas()
    asked = lags[KEY].map({key: config["staleness"] for key, config in facts.items()})
    settled = lags[lags["step"] >= asked]
    weighted = (settled["lag"] * settled["trajectories"]).groupby(settled[KEY]).sum()
    grouped = settled.groupby(KEY)
    counts, lowest, highest = grouped["trajectories"].sum(), grouped["lag"].min(), grouped["lag"].max()
    for key, config in facts.items():
        row = {"study": study, "task": config["task"], "asked": config["staleness"]}
        row |= {"every": config["eval_every"]}
        if key in counts:
            row |= {"lags": weighted[key], "trajectories": counts[key], "lowest": lowest[key], "highest": highest[key]}
        yield row


def _realized(recorded: pd.DataFrame) -> pd.DataFrame:
    grouped = recorded.groupby(PLACE)
    sums = grouped[["lags", "trajectories"]].sum()
    return pd.DataFrame(
        {
            "archived": grouped.size(),
            "mean": sums["lags"] / sums["trajectories"],
            "lowest": grouped["lowest"].min(),
            "highest": grouped["highest"].max(),
        }
    ).reset_index()


def _with_onsets(studies: Path) -> dict[str, Path]:
    """Tables that say when each run of a study fell, by study."""
    found = {}
    for path, end in ((path, end) for name, end in RUNS.items() for path in sorted(studies.glob(f"*/{name}"))):
        if {"task", "staleness", "onset"} <= set(pd.read_csv(path, nrows=0).columns):
            found[path.relative_to(studies).parts[0] + end] = path
    return found


def when(runs: pd.DataFrame, every: int) -> pd.Series:
    """Per run, when it failed: `early`, `perhaps` or `later`; missing where it did not.

    Args:
        runs: With `onset` and `staleness` (updates).
        every: Updates between evaluations.

    Returns:
        `early`: found down before update `staleness`, at which that lag is reached; `perhaps`: found down at that
        update or later, and last seen up before it; `later`: last seen up at that update or later.
    """
    found = pd.Series("later", index=runs.index).mask(runs["onset"] - every < runs["staleness"], "perhaps")
    return found.mask(runs["onset"] < runs["staleness"], "early").where(runs["onset"].notna())


def failures(study: str, runs: pd.DataFrame, every: int) -> pd.DataFrame:
    """Runs, failures and early failures of a study's table.

    Args:
        study: Its name.
        runs: Its table.
        every: Updates between its evaluations.
    """
    fell = when(runs, every)
    kinds = {"failed": fell.notna()} | {kind: fell == kind for kind in ("early", "perhaps")}
    marked = runs.assign(study=study, asked=runs["staleness"], runs=1, **kinds)
    return marked.groupby(PLACE)[["runs", "failed", "early", "perhaps"]].sum().reset_index()
