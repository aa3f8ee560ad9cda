"""Sentences and tables of `analysis` as blocks of a report, each number with the cells it rests on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from vcpo_bench.reports.document import Entry, Prose, Table, sentence
from vcpo_bench.reports.formatting import MISSING, fixed, number, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.study import Study

_CONTEXT = ("task", "method", "regime", "staleness", "lr", "control")
_LAG = re.compile(r"^Lag (\d+):")


@dataclass(frozen=True)
class Shown:
    """How one column of a table of `analysis` is shown.

    Attributes:
        heading: Of the column in the report.
        kind: `name` (text or axis), `count`, `rate` (a learning rate), `p` or `value`.
        digits: Decimals of a value.
        interval: The columns `<column>_low` and `<column>_high` stand behind the value; `low,high` names others.
    """

    heading: str
    kind: str = "value"
    digits: int = 2
    interval: str = ""


def statements(study: Study, ledger: Ledger, analysis: str, text: list[str]) -> Prose:
    """The sentences of an analysis; each carries an id that leads to the cells it speaks about."""
    cells = study.cells
    lines = []
    for one in text:
        lag = _LAG.match(one)
        keys = cells.loc[cells["staleness"] == int(lag.group(1)), "key"] if lag else cells["key"]
        entry = ledger.add(
            "statement",
            (one,),
            math.nan,
            f"a sentence of `vcpo-bench analyze {analysis}`, which prints the tables it rests on",
            keys,
            columns=("final_reward", "event", "onset"),
            text=one,
        )
        lines.append(sentence(entry))
    return Prose(lines, bullets=True)


def judged_table(
    study: Study,
    ledger: Ledger,
    name: str,
    frame: pd.DataFrame,
    caption: str,
    columns: Mapping[str, Shown],
) -> Table | None:
    """A table of `analysis` with the chosen columns; None when it is empty.

    The cells behind a row share its task, method, regime, lag, rate and control, as far as it names them.
    """
    if frame.empty:
        return None
    rows = []
    for row in frame.to_dict("records"):
        keys = _cells_of(study, row)
        about = [f"{key} {row[key]}" for key, shown in columns.items() if shown.kind in ("name", "rate")]
        rows.append([_entry(ledger, name, row, column, shown, about, keys) for column, shown in columns.items()])
    numeric = frozenset(place for place, shown in enumerate(columns.values()) if shown.kind != "name")
    return Table(name, caption, [shown.heading for shown in columns.values()], rows, numeric)


def _cells_of(study: Study, row: Mapping[object, object]) -> list[str]:
    cells = study.cells
    chosen = pd.Series(True, index=cells.index)
    for column in _CONTEXT:
        if column in row and row[column] in set(cells[column]):
            chosen &= cells[column] == row[column]
    methods = [row[column] for column in ("first", "second") if column in row]
    if methods:
        chosen &= cells["method"].isin(methods)
    return [str(key) for key in cells.loc[chosen, "key"]]


def _entry(
    ledger: Ledger,
    table: str,
    row: Mapping[object, object],
    column: str,
    shown: Shown,
    about: list[str],
    keys: list[str],
) -> Entry:
    raw = row[column]
    if shown.kind == "name":
        return Entry(MISSING if raw is None or raw != raw else str(raw), sort=_sort(raw))
    value = float(raw) if isinstance(raw, int | float) else math.nan
    if shown.kind == "rate":
        return Entry(rate(value), sort=value)
    text = _written(value, shown)
    if shown.interval:
        low, high = (_float(row[f"{column}_{end}" if shown.interval == "own" else end]) for end in ("low", "high"))
        # An interval without width comes from a single run: it would look like certainty.
        if low < high:  # false also where there is none
            text += f" [{fixed(low, shown.digits)}, {fixed(high, shown.digits)}]"
    how = f"column {column} of the table {table}, computed by `vcpo-bench analyze`"
    entry = ledger.add(f"{table}.{column}", about, value, how, keys, columns=("final_reward", "event"), text=text)
    return Entry(entry.text, entry, value)


def _written(value: float, shown: Shown) -> str:
    if shown.kind == "count":
        return number(value, 0)
    if shown.kind == "p":
        return "<0.001" if value < 0.001 else fixed(value, 3)
    return fixed(value, shown.digits)


def _sort(raw: object) -> float | None:
    return float(raw) if isinstance(raw, int | float) else None


def _float(raw: object) -> float:
    return float(raw) if isinstance(raw, int | float) else math.nan
