"""Every number and every statement of a report has an id that leads back to the rows it was computed from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from vcpo_bench.reports.formatting import number

STATEMENT = "statement"
"""What a sentence is, where a number has its quantity."""


@dataclass(frozen=True)
class Number:
    """A number of a report, or a statement with the numbers in it.

    Attributes:
        id: `<what>-<8 hex digits>`. Of a number it follows from what it is about, not from its value: it stays when
            runs are added. Of a statement it follows from its words.
        what: The quantity, such as `final_reward`; `statement` for a sentence.
        about: What it is about, such as `chain, fifo, lr 3e-4, lag 16, vcpo`.
        value: Unrounded; NaN for a statement.
        text: As printed.
        how: How it was computed, in a sentence.
        table: The table its rows are in, as `Study.table` finds it: `cells`, `steps`, `evals`, `probes`, `lm_eval`, or
            `ANALYSIS.TABLE`.
        columns: The columns of that table it depends on.
        keys: The cells it depends on.
        rows: Row numbers in that table, from 0; None: all rows of its cells.
    """

    id: str
    what: str
    about: str
    value: float
    text: str
    how: str
    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    rows: tuple[int, ...] | None = None


def id_of(what: str, words: str) -> str:
    """The id of a number or a statement.

    Args:
        what: The quantity; `statement` for a sentence.
        words: What it is about.
    """
    return f"{what}-{hashlib.sha256(f'{what}{chr(10)}{words}'.encode()).hexdigest()[:8]}"


def statement_id(analysis: str, text: str) -> str:
    """The id of a sentence of an analysis."""
    return id_of(STATEMENT, ", ".join((analysis, text)))


@dataclass
class Ledger:
    """All numbers of a report by id."""

    numbers: dict[str, Number] = field(default_factory=dict)

    def add(
        self,
        what: str,
        about: Iterable[object],
        value: float,
        how: str,
        keys: Iterable[object],
        *,
        table: str,
        columns: tuple[str, ...],
        rows: Iterable[int] | None = None,
        text: str | None = None,
    ) -> Number:
        """Enter a number and return it; the same number entered twice is the same entry.

        Args:
            what: The quantity; also the readable part of the id.
            about: What it is about, most general first.
            value: The number.
            how: How it was computed.
            keys: Cells it depends on.
            table: Table of the columns.
            columns: Columns it depends on.
            rows: Row numbers in that table; None: all rows of the cells.
            text: As printed; three decimals by default.

        Raises:
            ValueError: Another number has this id.
        """
        words = ", ".join(str(one) for one in about)
        shown = number(value) if text is None else text
        cells, places = tuple(str(key) for key in keys), None if rows is None else tuple(rows)
        entry = Number(id_of(what, words), what, words, float(value), shown, how, table, columns, cells, places)
        known = self.numbers.setdefault(entry.id, entry)
        same_value = known.value == entry.value or (math.isnan(known.value) and math.isnan(entry.value))
        if (known.about, known.table, known.keys, known.rows) != (words, table, cells, places) or not same_value:
            raise ValueError(f"two numbers of one report have the id {entry.id}: {known.about} and {entry.about}")
        return known
