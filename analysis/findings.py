"""What an analysis returns: tables, and sentences that know the rows, the columns and the cells they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pandas as pd

NOTE = "note"
"""Topic of what limits the conclusions: damaged files, mixed versions, too few seeds, something not recorded."""

CellsBehind = Callable[[pd.DataFrame], Iterable[str]]
"""Rows of a table -> keys of the cells they were computed from."""


@dataclass(frozen=True)
class Finding:
    """A sentence with the rows it rests on.

    Attributes:
        topic: What it is about. Reports choose findings by topic, never by their words.
        text: The sentence.
        keys: Cells that the rows were computed from.
        columns: Columns that hold what the sentence says, its names as well as its numbers.
        table: Table with these columns, by its name in the same `Findings`.
        rows: Row numbers in that table, from 0.
        known: Whether it says something of the runs, and not only that there are too few of them.
    """

    topic: str
    text: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    table: str
    rows: tuple[int, ...]
    known: bool = True


@dataclass
class Findings:
    """The tables of an analysis and the sentences that rest on them.

    Attributes:
        tables: By name, rows numbered from 0.
        cells_behind: How to get from rows of each table to the cells they were computed from.
        statements: The sentences in reading order.
    """

    tables: dict[str, pd.DataFrame]
    cells_behind: dict[str, CellsBehind]
    statements: list[Finding] = field(default_factory=list)

    def finding(
        self, topic: str, text: str, table: str, rows: pd.DataFrame, columns: tuple[str, ...], known: bool = True
    ) -> Finding:
        """A sentence that rests on some rows of a table.

        Args:
            topic: What it is about.
            text: The sentence.
            table: Name of the table.
            rows: Part of that table, with its row numbers as index.
            columns: Columns that hold what the sentence says.
            known: See `Finding`.

        Raises:
            ValueError: The table has no such rows or columns, or `rows` is empty.
        """
        whole = self.tables[table]
        numbers = tuple(int(number) for number in rows.index)
        absent = [name for name in columns if name not in whole]
        if not numbers or absent or not set(numbers) <= set(range(len(whole))):
            raise ValueError(f"{text!r} cannot rest on rows {numbers[:5]}, columns {columns} of {table!r}")
        return Finding(topic, text, self.keys(table, rows), columns, table, numbers, known)

    def keys(self, table: str, rows: pd.DataFrame) -> tuple[str, ...]:
        """Cells that some rows of a table were computed from, each once."""
        return tuple(dict.fromkeys(str(key) for key in self.cells_behind[table](rows)))

    def about(self, *topics: str) -> list[Finding]:
        """The statements on these topics, in reading order."""
        return [one for one in self.statements if one.topic in topics]


def agreeing(cells: pd.DataFrame, *columns: str) -> CellsBehind:
    """The cells that agree with a row in these columns.

    Args:
        cells: One row per cell, with its `key`.
        columns: Columns of both; none: every row rests on all cells.
    """
    keys: dict[tuple[object, ...], list[str]] = {}
    for place, key in zip(_places(cells, columns), cells["key"].to_numpy(dtype=object), strict=True):
        keys.setdefault(place, []).append(key)

    def behind(rows: pd.DataFrame) -> Iterable[str]:
        return [key for place in dict.fromkeys(_places(rows, columns)) for key in keys.get(place, ())]

    return behind


def _places(rows: pd.DataFrame, columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    """The values of each row in these columns."""
    # As plain objects: pandas unpacks a column of texts one by one when it is iterated.
    values = (rows[name].to_numpy(dtype=object) for name in columns)
    return list(zip(*values, strict=True)) if columns else [()] * len(rows)


def of_methods(cells: pd.DataFrame, names: tuple[str, ...], *columns: str) -> CellsBehind:
    """The cells of every method that a row names, and that agree with the row in these columns.

    Args:
        cells: One row per cell, with its `key` and `method`.
        names: Columns of the rows that name a method.
        columns: Columns of both.
    """
    matching = agreeing(cells, "method", *columns)

    def behind(rows: pd.DataFrame) -> Iterable[str]:
        return [key for name in names for key in matching(rows[[name, *columns]].rename(columns={name: "method"}))]

    return behind


def own_key(rows: pd.DataFrame) -> Iterable[str]:
    """Each row is about the one cell in its column `key`."""
    return rows["key"]
