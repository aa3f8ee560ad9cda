r"""Tables for LaTeX that fit: into one column, across both, or scaled; constant columns go into the caption.

Widths are measured with Computer Modern, which matplotlib ships: no LaTeX is started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from vcpo_bench.reports.document import Entry, Table

COLUMN, TEXT = 3.25, 6.75
"""Inches of one column and of the text of the narrowest style with two columns, where no venue is named."""

LONGEST = 40
"""Rows of one float; a longer table becomes several."""

SLACK = 1.03
"""Text is set a little wider than measured: hyphens and brackets of other fonts."""


class Size(NamedTuple):
    """A size of LaTeX text, in points, and half the space between columns at that size."""

    command: str
    points: float
    gap: float


SIZES = (Size(r"\small", 9.0, 4.0), Size(r"\footnotesize", 8.0, 3.0), Size(r"\scriptsize", 7.0, 2.5))


class Setting(NamedTuple):
    """How a table is set.

    Attributes:
        wide: It spans both columns.
        size: Size of its text.
        scaled: It is still too wide and is scaled down to the width.
    """

    wide: bool
    size: Size
    scaled: bool = False


def choose(headings: Sequence[str], rows: Sequence[Sequence[str]], column: float, text: float) -> Setting:
    """How a table must be set to fit.

    Args:
        headings: Of its columns.
        rows: Their texts.
        column: Width of one column in inches.
        text: Width of the whole text in inches.
    """
    em = [max(_width(cell) for cell in cells) for cells in zip(headings, *rows, strict=True)]
    for wide, inches in ((False, column), (True, text)):
        for size in SIZES if wide or column == text else SIZES[:2]:
            if SLACK * sum(em) * size.points + 2 * size.gap * len(em) <= inches * 72.27:
                return Setting(wide and column != text, size)
    return Setting(column != text, SIZES[-1], scaled=True)


def without_constants(table: Table) -> tuple[Table, str]:
    """The table without the columns in which all rows say the same, and what they say.

    A table of one row keeps its columns, and every table keeps one.
    """
    count = len(table.headings)
    constant = [i for i in range(count) if len(table.rows) > 1 and len({row[i].text for row in table.rows}) == 1]
    constant = constant if len(constant) < count else []
    kept = [i for i in range(count) if i not in constant]
    said = ", ".join(f"{table.headings[i]} {table.rows[0][i].text}" for i in constant if table.rows[0][i].text.strip())
    rows: list[list[Entry]] = [[row[i] for i in kept] for row in table.rows]
    numeric = frozenset(kept.index(i) for i in table.numeric if i in kept)
    return Table(table.name, table.caption, [table.headings[i] for i in kept], rows, numeric), said


def parts(table: Table) -> list[Table]:
    """The table in pieces of nearly equal length that fit a page."""
    pieces = max(1, math.ceil(len(table.rows) / LONGEST))
    length = math.ceil(len(table.rows) / pieces)
    return [
        Table(table.name, table.caption, table.headings, table.rows[at : at + length], table.numeric)
        for at in range(0, max(len(table.rows), 1), max(length, 1))
    ]


@cache
def _width(text: str) -> float:
    """Width of a line of text in Computer Modern Roman, in em."""
    font = FontProperties(fname=_FONT, size=100)
    # the font lacks signs, dashes and control characters: a question mark is about as wide
    known = "".join(one if one.isascii() and one.isprintable() else "?" for one in text) or " "
    width: float = TextToPath().get_text_width_height_descent(known, font, ismath=False)[0]
    return width / 100


def _font() -> str:
    from matplotlib import get_data_path

    return f"{get_data_path()}/fonts/ttf/cmr10.ttf"


_FONT = _font()
