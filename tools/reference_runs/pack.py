"""The curves of a reference run, packed small: one row per update, four digits, under the trainer's own names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path


def write(path: Path, rows: Iterable[Mapping[str, float]], names: Iterable[str]) -> None:
    """Write the named columns of the rows; a value that is missing is an empty cell."""
    columns = list(names)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_short(row.get(name)) for name in columns] for row in rows)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
