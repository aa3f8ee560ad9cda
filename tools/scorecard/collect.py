"""From a results folder to the tables that ship: small, without what no judge reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.results import Results, load

from .cells import PLACE, planned
from .fact import Fact
from .places import DOCS
from .tables import EVAL_COLUMNS, EVALS, RUNS, RUNS_PER_FILE, UPDATE_COLUMNS, UPDATES, Tables

_COMPRESSED = {"method": "gzip", "mtime": 1}  # a fixed time: the same runs make the same file


def collect(results: Path, folder: Path, facts: Iterable[Fact]) -> int:
    """Write the tables of the runs that have ended, and of those that the folder has from before.

    Args:
        results: Results folder.
        folder: Where the tables go.
        facts: Whose runs; those with `signals` keep their updates.

    Returns:
        How many runs the tables have.
    """
    tables = joined(Tables.read(folder, DOCS), _tables(results, list(facts)))
    folder.mkdir(parents=True, exist_ok=True)
    _write(tables.evals, folder / EVALS)
    for path in folder.glob(UPDATES.format("*")):
        path.unlink()
    for first in range(0, max(len(tables.runs), 1), RUNS_PER_FILE):
        part = tables.updates[tables.updates["run"].between(first, first + RUNS_PER_FILE - 1)]
        if len(part):  # a table without rows would make all columns objects when it is read
            _write(part, folder / UPDATES.format(f"{first:03d}"))
    tables.runs.to_csv(folder / RUNS, index=False)
    return len(tables.runs)


def joined(old: Tables, new: Tables) -> Tables:
    """The runs of both, numbered anew; where both have a run, the new one."""
    known = {tuple(row) for row in new.runs[PLACE].itertuples(index=False)}
    kept = [tuple(row) not in known for row in old.runs[PLACE].itertuples(index=False)]
    parts = ((old, old.runs[kept]), (new, new.runs))
    rows = pd.concat([own.assign(part=part) for part, (_, own) in enumerate(parts) if len(own)] or [old.runs])
    rows = rows.sort_values(PLACE, kind="stable").reset_index(drop=True)
    numbers = {place: number for number, place in enumerate(zip(rows.get("part", []), rows["run"], strict=False))}
    runs = rows.drop(columns="part", errors="ignore").assign(run=range(len(rows)))
    evals, updates = (_both(getattr(old, name), getattr(new, name), numbers) for name in ("evals", "updates"))
    return Tables(runs, evals, updates, old.docs)


def _both(old: pd.DataFrame, new: pd.DataFrame, numbers: Mapping[tuple[int, int], int]) -> pd.DataFrame:
    found = [_renumbered(table, part, numbers) for part, table in enumerate((old, new))]
    return pd.concat([one for one in found if len(one)] or [old])


def _renumbered(table: pd.DataFrame, part: int, numbers: Mapping[tuple[int, int], int]) -> pd.DataFrame:
    found = table.assign(run=[numbers.get((part, run), -1) for run in table["run"]])
    return found[found["run"] >= 0]


def _tables(results: Path, facts: list[Fact]) -> Tables:
    """The tables of the runs of a results folder."""
    cells = planned(block for fact in facts for block in fact.blocks)
    with_updates = planned(block for fact in facts if fact.signals for block in fact.blocks)
    loaded = load(results)
    ended = loaded.cells[loaded.cells["key"].isin(cells) & (loaded.cells["status"] != "error")]
    chosen = loaded.select(ended["key"])
    runs = chosen.cells[["key", *PLACE, "status"]].reset_index(drop=True).rename_axis("run").reset_index()
    numbers = dict(zip(runs["key"], runs["run"], strict=True))
    updates = _updates(chosen, {key: run for key, run in numbers.items() if key in with_updates})
    return Tables(runs.drop(columns="key"), _numbered(chosen.evals, numbers, EVAL_COLUMNS), updates, DOCS)


def _updates(results: Results, numbers: dict[str, int]) -> pd.DataFrame:
    """The updates of some runs, one cell after another: all of them at once are large."""
    empty = pd.DataFrame(columns=["run", "step", *UPDATE_COLUMNS])
    own = results.select(numbers).steps_by_cell()
    return pd.concat([empty, *(_numbered(steps, numbers, UPDATE_COLUMNS) for _, steps in own)])


def _numbered(table: pd.DataFrame, numbers: dict[str, int], columns: list[str]) -> pd.DataFrame:
    return table.assign(run=table["key"].map(numbers))[["run", "step", *columns]]


def _write(table: pd.DataFrame, path: Path) -> None:
    table.sort_values(["run", "step"], kind="stable").to_csv(
        path, index=False, float_format="%.4g", compression=_COMPRESSED
    )
