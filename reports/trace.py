"""From a number or a statement of a report back to the rows it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.commands import ANALYSES, run_on
from vcpo_bench.analysis.wording import counted
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.analyses import find_source
from vcpo_bench.reports.numbers import STATEMENT, Ledger, Number, statement_id
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.analysis_blocks import enter_statement
from vcpo_bench.reports.study import Study, open_study

_SETTINGS = ["key", "task", "method", "regime", "staleness", "lr", "seed", "status"]
_MOST_LINES = 40


@dataclass(frozen=True)
class Trace:
    """A number or a statement, and what it rests on.

    Attributes:
        number: The number; a statement is one with text.
        rows: The rows of the table it names, with its columns; the index is the row number in that table.
        cells: The cells these rows were computed from, with their settings.
    """

    number: Number
    rows: pd.DataFrame
    cells: pd.DataFrame

    @property
    def text(self) -> str:
        """What it is, how it was computed, its rows, and the cells behind them (40 lines of each at most)."""
        one = self.number
        about = [] if one.what == STATEMENT else [f"  {one.what} of {one.about}"]
        lines = [f"{one.id}: {one.text}", *about, f"  {one.how}"]
        lines += _listed(f"{counted(len(self.rows), 'row')} of {_origin(one.table)}", self.rows)
        if "key" not in self.rows:
            lines += _listed(f"computed from {counted(len(self.cells), 'cell')}", self.cells, numbered=False)
        return "\n".join(lines)


def trace(results_folder: str | Path | Iterable[str | Path], number_id: str) -> Trace:
    """Find a number or a statement of the report of a results folder, and the rows it rests on.

    A statement that is not in the report is looked for in every analysis of the catalog: `vcpo-bench lab analyze --ids`
    prints those.

    Args:
        results_folder: The folder, or those, the report was made from.
        number_id: As the page shows it when hovering, such as `final_reward-1a2b3c4d` or `statement-5e6f7a8b`.

    Raises:
        UsageError: Neither the report nor an analysis of these results has such an id.
    """
    study = open_study(results_folder)
    numbers = build(study).ledger.numbers
    number = numbers.get(number_id) or _of_an_analysis(study, number_id)
    if number is None:
        close = get_close_matches(number_id, numbers, n=3, cutoff=0.4)
        hint = f"; close are {', '.join(close)}" if close else ""
        raise UsageError(f"no number or statement {number_id!r} in the report of these results{hint}")
    cells = study.cells.loc[study.cells["key"].isin(number.keys), _SETTINGS].reset_index(drop=True)
    return Trace(number, rows_behind(study, number), cells)


def _of_an_analysis(study: Study, number_id: str) -> Number | None:
    """A statement by its id, if an analysis of the catalog makes it."""
    if number_id.partition("-")[0] != STATEMENT:
        return None
    for name in ANALYSES.names():
        found = run_on(ANALYSES.parse(name), study.results)
        for one in found.statements:
            if statement_id(name, one.text) == number_id:
                study.adopt(name, found)
                return enter_statement(Ledger(), name, one)
    return None


def rows_behind(study: Study, number: Number) -> pd.DataFrame:
    """The rows and columns of the table that a number names; with all rows of its cells if it names no rows."""
    table = study.table(number.table)
    if number.rows is not None:
        columns = dict.fromkeys([*(["key"] if "key" in table else []), *number.columns])
        return table.iloc[list(number.rows)][list(columns)]
    place = _SETTINGS if number.table == "cells" else ["key", "step"]
    columns = dict.fromkeys([*place, *number.columns])
    return table.loc[table["key"].isin(number.keys), list(columns)]


def _origin(table: str) -> str:
    analysis, dot, name = table.partition(".")
    command = find_source(analysis).command if dot else ""
    return f"the table `{name or table}`" + (f" of `vcpo-bench lab analyze {command}`" if command else "")


def _listed(heading: str, rows: pd.DataFrame, numbered: bool = True) -> list[str]:
    """A heading and the rows below it; the heading alone where there are none."""
    if rows.empty:
        return [f"  {heading}"]
    more = len(rows) - _MOST_LINES
    shown = rows.head(_MOST_LINES).to_string(index=numbered, float_format=lambda value: f"{value:.6g}")
    return [f"  {heading}:", shown, *([f"... and {more} more"] if more > 0 else [])]
