"""A run for tools that only take what a training loop hands them: one row per step, in our columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_columns(path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]], names: Mapping[str, str]) -> None:
    """Write `NAME.columns.csv`.

    Args:
        path: The file.
        rows: Step, and what the framework logged.
        names: The framework's names and ours.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *names.values()])
        writer.writerows([step, *(logged.get(one, "") for one in names)] for step, logged in rows)
