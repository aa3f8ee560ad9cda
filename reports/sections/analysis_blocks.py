"""Statements and tables of `analysis` as blocks of a report: each number knows the rows and the cells it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from vcpo_bench.analysis.caveats import DAMAGE
from vcpo_bench.analysis.comparison.coverage import UNFINISHED
from vcpo_bench.analysis.findings import Finding
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.wording import row_by_row
from vcpo_bench.reports.document import Prose, Sentence, Table, TableCell, sentence
from vcpo_bench.reports.formatting import MISSING, fixed, number, rate
from vcpo_bench.reports.numbers import STATEMENT, Ledger, Number
from vcpo_bench.reports.study import Study

_WARNINGS = (DAMAGE, UNFINISHED)
_LEVEL = " [95%]"
_NONE = f"Intervals and tests are shown from {ENOUGH} runs on."


@dataclass(frozen=True)
class Shown:
    """How one column of a table of `analysis` is shown.

    Attributes:
        heading: Of the column in the report.
        kind: `name` (text or axis), `count`, `rate` (a learning rate), `p` or `value`.
        digits: Decimals of a value.
        interval: The interval behind a value: `own` (columns `<column>_low` and `<column>_high`), `plain` (columns
            `low` and `high`), or none.
    """

    heading: str
    kind: str = "value"
    digits: int = 2
    interval: str = ""

    def ends(self, column: str) -> tuple[str, ...]:
        """The columns of the interval of a column."""
        return {"own": (f"{column}_low", f"{column}_high"), "plain": ("low", "high")}.get(self.interval, ())


@dataclass(frozen=True)
class Layout:
    """How a table of `analysis` is shown.

    Attributes:
        table: Its name in the analysis, and in the report.
        caption: What it holds.
        columns: The columns that are shown, in order.
        intervals: What its intervals are: the end of the caption where there are any.
    """

    table: str
    caption: str
    columns: Mapping[str, Shown]
    intervals: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that say what a row is about."""
        return tuple(column for column, shown in self.columns.items() if shown.kind in ("name", "rate"))

    @property
    def settings(self) -> int:
        """How many columns, the first ones, say what a row is about; a rate that was found is a result."""
        found = [shown.kind != "name" and column != "lr" for column, shown in self.columns.items()]
        return [*found, True].index(True)


def statements(study: Study, ledger: Ledger, analysis: str, *topics: str, bullets: bool = True) -> list[Prose]:
    """What an analysis says on some topics, as one block; nothing if it says nothing."""
    return as_prose(ledger, analysis, study.findings(analysis).about(*topics), bullets)


def as_prose(ledger: Ledger, analysis: str, findings: Sequence[Finding], bullets: bool = True) -> list[Prose]:
    """Some statements of an analysis as one block; nothing of none."""
    lines = [_statement(ledger, analysis, one) for one in findings]
    return [Prose(lines, bullets)] if lines else []


def _statement(ledger: Ledger, analysis: str, finding: Finding) -> Sentence:
    return sentence(enter_statement(ledger, analysis, finding), tone="bad" if finding.topic in _WARNINGS else "")


def enter_statement(ledger: Ledger, analysis: str, finding: Finding) -> Number:
    """Enter a sentence of an analysis into the ledger, with the rows it rests on."""
    return ledger.add(
        STATEMENT,
        (analysis, finding.text),
        math.nan,
        f"statement on the topic {finding.topic!r}",
        finding.keys,
        table=f"{analysis}.{finding.table}",
        columns=finding.columns,
        rows=finding.rows,
        text=finding.text,
    )


def analysis_table(
    study: Study, ledger: Ledger, analysis: str, layout: Layout, frame: pd.DataFrame | None = None
) -> list[Table]:
    """A table of `analysis` as one block; nothing when it is empty.

    Args:
        study: The study.
        ledger: Takes the numbers.
        analysis: Which analysis, as `Study.findings` names it.
        layout: Which table, and how it is shown.
        frame: Some of its rows in another order, with their row numbers as index; None: the whole table.
    """
    found = study.findings(analysis)
    shown = found.tables[layout.table] if frame is None else frame
    layout = replace(layout, columns={one: how for one, how in layout.columns.items() if _is_known(shown, one, how)})
    rows = []
    for part, values in row_by_row(shown):
        row = _Row(f"{analysis}.{layout.table}", int(part.index[0]), values, found.keys(layout.table, part))
        rows.append([_entry(ledger, layout, column, row) for column in layout.columns])
    sure = [_has_interval(shown, column, one) for column, one in layout.columns.items()]
    headings = [
        one.heading if certain else one.heading.removesuffix(_LEVEL)
        for one, certain in zip(layout.columns.values(), sure, strict=True)
    ]
    numeric = frozenset(place for place, one in enumerate(layout.columns.values()) if one.kind != "name")
    end = layout.intervals if any(sure) else _NONE if layout.intervals else ""
    caption = f"{layout.caption} {end}".strip()
    return [Table(layout.table, caption, headings, rows, numeric, layout.settings)] if rows else []


def _is_known(frame: pd.DataFrame, column: str, shown: Shown) -> bool:
    """Whether a column has something to show: one of p does not where nothing could be tested."""
    return shown.kind != "p" or bool(frame[column].notna().any())


def _has_interval(frame: pd.DataFrame, column: str, shown: Shown) -> bool:
    """Whether some row shows an interval in a column."""
    return bool(shown.interval) and any(_low_and_high(row, column, shown) for _, row in row_by_row(frame))


class _Row(NamedTuple):
    """A row of a table of `analysis`: where it is, what it holds, and the cells it was computed from."""

    table: str
    number: int
    values: dict[Any, Any]
    keys: tuple[str, ...]


def _entry(ledger: Ledger, layout: Layout, column: str, row: _Row) -> TableCell:
    raw, shown = row.values[column], layout.columns[column]
    if shown.kind == "name":
        return TableCell(MISSING if raw is None or raw != raw else str(raw), sort=_sort(raw))
    if shown.kind == "rate":
        return TableCell(rate(_float(raw)), sort=_float(raw))
    value = ledger.add(
        f"{layout.table}.{column}",
        [*(f"{name} {row.values[name]}" for name in layout.named), *["control"] * bool(row.values.get("control"))],
        _float(raw),
        f"column {column} of the table",
        row.keys,
        table=row.table,
        columns=(*layout.named, column, *shown.ends(column)),
        rows=[row.number],
        text=_written(row.values, column, shown),
    )
    return TableCell(value.text, value, value.value)


def _written(row: Mapping[Any, Any], column: str, shown: Shown) -> str:
    value = _float(row[column])
    if shown.kind == "count":
        return number(value, 0)
    if shown.kind == "p":
        return "<0.001" if value < 0.001 else fixed(value, 3)
    text = fixed(value, shown.digits)
    ends = _low_and_high(row, column, shown)
    return f"{text} [{', '.join(fixed(end, shown.digits) for end in ends)}]" if ends else text


def _low_and_high(row: Mapping[Any, Any], column: str, shown: Shown) -> tuple[float, ...]:
    """The interval of a value, empty without one: one without width is of a single run and would look certain."""
    ends = tuple(_float(row[end]) for end in shown.ends(column))
    return ends if ends and ends[0] < ends[1] else ()


def _sort(raw: object) -> float | None:
    return float(raw) if isinstance(raw, int | float) else None


def _float(raw: object) -> float:
    return float(raw) if isinstance(raw, int | float) else math.nan
