"""Every number of a report has an id that leads back to the rows it was computed from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from vcpo_bench.reports.formatting import number


@dataclass(frozen=True)
class Number:
    """One number of a report.

    Attributes:
        id: `<what>-<8 hex digits>`, a function of what it is about, not of its value: stable when runs are added.
        what: The quantity, such as `final_reward`.
        about: What it is about, such as `chain, fifo, lr 3e-4, lag 16, vcpo`.
        value: Unrounded.
        text: As printed.
        how: How it was computed, in a sentence.
        table: The recorded table its column is in: `cells`, `steps`, `evals`, `lags` or `scores`.
        columns: The columns of that table it depends on.
        keys: The cells it depends on.
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
        table: str = "cells",
        columns: tuple[str, ...],
        text: str | None = None,
    ) -> Number:
        """Enter a number and return it; the same number entered twice is the same entry.

        Args:
            what: The quantity; also the readable part of the id.
            about: What it is about, most general first.
            value: The number.
            how: How it was computed.
            keys: Cells it depends on.
            table: Recorded table of the columns.
            columns: Columns it depends on.
            text: As printed; three decimals by default.

        Raises:
            ValueError: Another number has this id.
        """
        words = ", ".join(str(one) for one in about)
        digest = hashlib.sha256(f"{what}\n{words}".encode()).hexdigest()[:8]
        shown = number(value) if text is None else text
        cells = tuple(str(key) for key in keys)
        entry = Number(f"{what}-{digest}", what, words, float(value), shown, how, table, columns, cells)
        known = self.numbers.setdefault(entry.id, entry)
        same_value = known.value == entry.value or (math.isnan(known.value) and math.isnan(entry.value))
        if (known.about, known.keys) != (entry.about, entry.keys) or not same_value:
            raise ValueError(f"two numbers of one report have the id {entry.id}: {known.about} and {entry.about}")
        return known
