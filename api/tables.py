"""`vb.load`: recorded results as pandas tables that know their units. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html import escape
from pathlib import Path

import pandas as pd

from vcpo_bench import records
from vcpo_bench.analysis.comparison.scoreboard import cell_summary, scoreboard
from vcpo_bench.analysis.recorded_tables import COLUMNS
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.results import load as load_results
from vcpo_bench.api.units import CELL_COLUMNS, SCOREBOARD_COLUMNS, Meaning
from vcpo_bench.naming.grammar import unknown_name


class Tables:
    """The tables of one or more results folders, each read when it is first used: `tables.steps` or `tables["steps"]`.

    Every table but `scoreboard`, whose rows stand for several cells, has a `key` column that names its cell, so tables
    join on it. `table.attrs["units"]` maps columns to
    units and `table.attrs["meanings"]` to one sentence each; `units` lists both for all tables. Values that are not
    finite are missing.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        """What the tables come from, for the functions of `vcpo_bench.analysis`."""

    def __repr__(self) -> str:
        folders = ", ".join(str(folder) for folder in self.results.folders)
        return f"<Tables of {folders}: {len(self.results.cells)} cells>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the scoreboard, and what else there is."""
        names = ", ".join(f"<code>{name}</code>" for name in self)
        return f"<p>{escape(repr(self))}: {names}</p>{self.scoreboard.round(3).to_html()}"

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in _COLUMNS_OF:
            raise KeyError(unknown_name("table", name, _COLUMNS_OF))
        table: pd.DataFrame = getattr(self, name)
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(_COLUMNS_OF)

    def keys(self) -> list[str]:
        """The names of the tables: `dict(tables)` holds them all."""
        return list(self)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per training run: its settings, how it ended, its rewards and the verdict of the collapse rule."""
        return _described(cell_summary(self.results), CELL_COLUMNS)

    @cached_property
    def scoreboard(self) -> pd.DataFrame:
        """One row per task, method, regime, lag and learning rate: means over seeds with 95% intervals."""
        return _described(scoreboard(self.results), SCOREBOARD_COLUMNS)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per optimizer update of each cell."""
        return _described(self.results.steps, _recorded(records.STEPS_FILE))

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """One row per evaluation on the held-out prompts of each cell."""
        return _described(self.results.evals, _recorded(records.EVALS_FILE))

    @cached_property
    def lags(self) -> pd.DataFrame:
        """How many trajectories, and tokens, each update consumed at each realized lag."""
        return _described(self.results.lags, _recorded(records.LAGS_FILE))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row per consumed trajectory; empty unless `record` was `diagnostics` or `full`."""
        return _described(self.results.samples, _recorded(records.SAMPLES_FILE))

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """Four held-out prompts with the responses to them as text, at every evaluation."""
        return _described(self.results.episodes, _recorded(records.EPISODES_FILE))

    @property
    def problems(self) -> list[str]:
        """Damaged or missing files, one sentence each; tables are read when first used, and the list grows then."""
        return [str(problem) for problem in self.results.problems]

    @property
    def notes(self) -> list[str]:
        """What a reader must know before comparing the cells."""
        return [str(note) for note in self.results.notes]

    @cached_property
    def units(self) -> pd.DataFrame:
        """Every column of every table: `table`, `column`, `unit`, `meaning`."""
        rows = [
            (table, column, *meaning) for table, columns in _COLUMNS_OF.items() for column, meaning in columns.items()
        ]
        return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])


def load(*folders: str | Path, partial: bool = False) -> Tables:
    """Read results folders into pandas tables.

    Args:
        folders: What `vcpo-bench run` or `vb.run` wrote; several are pooled, and a cell in two of them counts once.
            None: `results/default`.
        partial: Also read cells that are still running, from their newest checkpoint.

    Returns:
        The tables. Checksums are verified while a table is read; what is damaged is left out and named in `problems`.

    Raises:
        UsageError: A folder does not exist or holds no cells.
    """
    return Tables(load_results([Path(folder) for folder in folders] or Path("results/default"), partial))


def _recorded(kind: str) -> dict[str, Meaning]:
    return {"key": CELL_COLUMNS["key"]} | {one.name: Meaning(one.unit, one.meaning) for one in COLUMNS[kind]}


_COLUMNS_OF = {
    "cells": CELL_COLUMNS,
    "scoreboard": SCOREBOARD_COLUMNS,
    "steps": _recorded(records.STEPS_FILE),
    "evaluations": _recorded(records.EVALS_FILE),
    "lags": _recorded(records.LAGS_FILE),
    "samples": _recorded(records.SAMPLES_FILE),
    "episodes": _recorded(records.EPISODES_FILE),
}
"""Every table, with its columns."""


def _described(table: pd.DataFrame, columns: dict[str, Meaning]) -> pd.DataFrame:
    """The table with the units and meanings of those of its columns that are known."""
    known = {name: columns[name] for name in map(str, table.columns) if name in columns}
    described = table.copy(deep=False)
    described.attrs = {
        "units": {name: one.unit for name, one in known.items()},
        "meanings": {name: one.meaning for name, one in known.items()},
    }
    return described
