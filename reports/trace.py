"""From a number of a report back to the recorded rows it was computed from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from vcpo_bench.errors import UsageError
from vcpo_bench.reports.numbers import Number
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study, open_study

_SETTINGS = ["key", "task", "method", "regime", "staleness", "lr", "seed", "status"]
_MOST_LINES = 40


@dataclass(frozen=True)
class Trace:
    """A number and the rows of the recorded table (or of the per-cell summary) behind it."""

    number: Number
    rows: pd.DataFrame

    @property
    def text(self) -> str:
        """What the number is, how it was computed, and its rows (the first 40 of them)."""
        one = self.number
        shown = self.rows.head(_MOST_LINES).to_string(index=False, float_format=lambda value: f"{value:.6g}")
        more = len(self.rows) - _MOST_LINES
        tail = [f"... and {more} more rows"] if more > 0 else []
        heading = [f"{one.id}: {one.text}", f"  {one.what} of {one.about}", f"  {one.how}", f"  from {one.table}:"]
        return "\n".join([*heading, shown, *tail])


def trace(results_folder: str | Path | Iterable[str | Path], number_id: str) -> Trace:
    """Find a number of the report of a results folder and the rows behind it.

    Args:
        results_folder: The folder, or those, the report was made from.
        number_id: As the page shows it when hovering, such as `final_reward-1a2b3c4d`.

    Raises:
        UsageError: The report of these results has no number with this id.
    """
    study = open_study(results_folder)
    numbers = build(study).ledger.numbers
    if number_id not in numbers:
        close = get_close_matches(number_id, numbers, n=3, cutoff=0.4)
        hint = f"; close are {', '.join(close)}" if close else ""
        raise UsageError(f"no number {number_id!r} in the report of these results{hint}")
    return Trace(numbers[number_id], rows_behind(study, numbers[number_id]))


def rows_behind(study: Study, number: Number) -> pd.DataFrame:
    """The rows of the table a number names, for its cells and columns."""
    keys = set(number.keys)
    if number.table == "cells":
        columns = [*_SETTINGS, *(name for name in number.columns if name not in _SETTINGS)]
        return study.cells.loc[study.cells["key"].isin(keys), columns].reset_index(drop=True)
    table: pd.DataFrame = getattr(study.results, number.table)
    columns = ["key", *(["step"] if "step" not in number.columns else []), *number.columns]
    return table.loc[table["key"].isin(keys), columns].reset_index(drop=True)
