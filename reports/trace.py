"""From a number or a statement of a report back to the rows it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.wording import counted
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.numbers import Number
from vcpo_bench.reports.report import build
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
        about = [] if one.what == "statement" else [f"  {one.what} of {one.about}"]
        lines = [f"{one.id}: {one.text}", *about, f"  {one.how}"]
        lines += [f"  {counted(len(self.rows), 'row')} of {_origin(one.table)}:", *_printed(self.rows)]
        if "key" not in self.rows:
            lines += [f"  computed from {counted(len(self.cells), 'cell')}:", *_printed(self.cells, numbered=False)]
        return "\n".join(lines)


def trace(results_folder: str | Path | Iterable[str | Path], number_id: str) -> Trace:
    """Find a number or a statement of the report of a results folder, and the rows it rests on.

    Args:
        results_folder: The folder, or those, the report was made from.
        number_id: As the page shows it when hovering, such as `final_reward-1a2b3c4d` or `statement-5e6f7a8b`.

    Raises:
        UsageError: The report of these results has no such id.
    """
    study = open_study(results_folder)
    numbers = build(study).ledger.numbers
    if number_id not in numbers:
        close = get_close_matches(number_id, numbers, n=3, cutoff=0.4)
        hint = f"; close are {', '.join(close)}" if close else ""
        raise UsageError(f"no number or statement {number_id!r} in the report of these results{hint}")
    number = numbers[number_id]
    cells = study.cells.loc[study.cells["key"].isin(number.keys), _SETTINGS].reset_index(drop=True)
    return Trace(number, rows_behind(study, number), cells)


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
    if analysis in ("coverage", "caveats") or not dot:
        return f"the table `{name or table}`"
    # A report computes the primary endpoint of a prediction study only, from fewer signals.
    command = "prediction" if analysis == "auroc" else analysis
    return f"the table `{name}` of `vcpo-bench analyze {command}`"


def _printed(rows: pd.DataFrame, numbered: bool = True) -> list[str]:
    more = len(rows) - _MOST_LINES
    shown = rows.head(_MOST_LINES).to_string(index=numbered, float_format=lambda value: f"{value:.6g}")
    return [shown, *([f"... and {more} more"] if more > 0 else [])]
