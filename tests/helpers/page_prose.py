"""What the tests of pages share: prose on one line, numbers as pages print them, and tables of a page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vcpo_bench.analysis.intervals import t_interval

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks"
MARGIN = 0.05
"""Reward below which a difference does not matter."""


def prose(page: Path) -> str:
    """The text of a page on one line, one space between words, without the mark of intervals that are too narrow."""
    return " ".join(page.read_text(encoding="utf-8").replace("†", "").split())


def number(value: float, digits: int = 2) -> str:
    """A number with so many decimals, and never minus zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def ends(low: float, high: float, digits: int = 2) -> str:
    """An interval: `[low, high]`."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def mean(values: ArrayLike, digits: int = 2) -> str:
    """Mean of values per seed, shape [seeds], with its 95% t interval: `mean [low, high]`."""
    return f"{number(float(np.mean(values)), digits)} {ends(*t_interval(values), digits)}"


def verdict(values: ArrayLike) -> set[str]:
    """What differences per seed, shape [seeds], show.

    Returns:
        `equivalent` where the 90% interval lies within the margin; `more` or `less` where the 95% interval is without
        0; `undecided` where neither holds.
    """
    low, high = t_interval(values)
    low90, high90 = t_interval(values, 0.9)
    found = {"more"} if low > 0 else {"less"} if high < 0 else set()
    if low90 >= -MARGIN and high90 <= MARGIN:
        found.add("equivalent")
    return found or {"undecided"}


def table(page: Path, head: Sequence[str], section: str = "") -> dict[str, list[str]]:
    """The cells of a table of a page by the first cell of their row.

    Args:
        page: The page.
        head: The cells of its head.
        section: A heading: the table is the first with this head below it.

    Raises:
        ValueError: The page has no such table.
    """
    text = page.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in text[text.index(section) :].splitlines()]
    found = {}
    for row in rows[rows.index(list(head)) + 2 :]:
        if len(row) != len(head):
            break
        found[row[0]] = row[1:]
    return found
