"""From a results folder to the tables that ship: small, without what no judge reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.results import Results, load

from .cells import PLACE, planned
from .fact import Fact
from .tables import EVAL_COLUMNS, EVALS, RUNS, UPDATE_COLUMNS, UPDATES

_COMPRESSED = {"method": "gzip", "mtime": 1}  # a fixed time: the same runs make the same file


def collect(results: Path, folder: Path, facts: Iterable[Fact]) -> int:
    """Write the tables of the runs that have ended.

    Args:
        results: Results folder.
        folder: Where the tables go.
        facts: Whose runs; those with `signals` keep their updates.

    Returns:
        How many runs the tables have.
    """
    facts = list(facts)
    cells = planned(block for fact in facts for block in fact.blocks)
    with_updates = planned(block for fact in facts if fact.signals for block in fact.blocks)
    loaded = load(results)
    ended = loaded.cells[loaded.cells["key"].isin(cells) & (loaded.cells["status"] != "error")]
    chosen = loaded.select(ended["key"])
    rows = chosen.cells[["key", *PLACE, "status"]].sort_values(PLACE, kind="stable").reset_index(drop=True)
    runs = rows.rename_axis("run").reset_index()
    numbers = dict(zip(runs["key"], runs["run"], strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    _write(_numbered(chosen.evals, numbers, EVAL_COLUMNS), folder / EVALS)
    _write(_updates(chosen, {key: run for key, run in numbers.items() if key in with_updates}), folder / UPDATES)
    runs.drop(columns="key").to_csv(folder / RUNS, index=False)
    return len(runs)


def _updates(results: Results, numbers: dict[str, int]) -> pd.DataFrame:
    """The updates of some runs, one cell after another: all of them at once are large."""
    empty = pd.DataFrame(columns=["run", "step", *UPDATE_COLUMNS])
    own = results.select(numbers).steps_by_cell()
    return pd.concat([empty, *(_numbered(steps, numbers, UPDATE_COLUMNS) for _, steps in own)])


def _numbered(table: pd.DataFrame, numbers: dict[str, int], columns: list[str]) -> pd.DataFrame:
    found = table.assign(run=table["key"].map(numbers))[["run", "step", *columns]]
    return found.sort_values(["run", "step"], kind="stable")


def _write(table: pd.DataFrame, path: Path) -> None:
    table.sort_values(["run", "step"], kind="stable").to_csv(
        path, index=False, float_format="%.4g", compression=_COMPRESSED
    )
