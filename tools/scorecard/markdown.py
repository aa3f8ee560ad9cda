"""Reads tables of pages, so that a verdict rests on what was published there and not on a copy."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd


def table(page: Path, after: str) -> pd.DataFrame:
    """The first table below a line of a page, as text.

    Args:
        page: Markdown file.
        after: A line of the page, such as the heading above the table.

    Raises:
        ValueError: The page has no such line, or no table below it.
    """
    lines = page.read_text().splitlines()
    if after not in lines:
        raise ValueError(f"{page}: no line {after!r}")
    below = lines[lines.index(after) + 1 :]
    start = next((i for i, line in enumerate(below) if line.startswith("|")), None)
    if start is None:
        raise ValueError(f"{page}: no table below {after!r}")
    rows = []
    for line in below[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return pd.DataFrame(rows[2:], columns=rows[0])


def numbers(cell: str) -> list[float]:
    """The numbers of a cell, in order: `0.123 / 0.711 ± 0.024` has three."""
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", cell)]
