"""Tables as notebooks and trackers show them, copied as text: a header, then rows, cells apart by `|` or tabs."""

from __future__ import annotations

from vcpo_bench.analysis.logs.names import step_names
from vcpo_bench.analysis.logs.values import number

_LEAST = 3
"""Cells of a row: a step and two values."""


class PastedTable:
    """Takes the lines of a text one after another and gives those that are rows below a header."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def take(self, line: str) -> dict[str, str]:
        """The row that a line holds; empty for a header, a rule, and lines that are no part of a table."""
        cells = [cell.strip() for cell in line.strip().strip("|").split("\t" if "\t" in line else "|")]
        if len(cells) < _LEAST:
            return {}
        numbers = sum(number(cell) is not None for cell in cells)
        if not numbers and any(cell in step_names() for cell in cells):
            self._names = [cell.replace(" / ", "/") for cell in cells]  # notebooks show names with spaces
        elif numbers and len(cells) == len(self._names):
            return {name: cell for name, cell in zip(self._names, cells, strict=True) if name and cell}
        return {}
