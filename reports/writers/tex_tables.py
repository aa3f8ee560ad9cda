r"""Tables for LaTeX that fit: one column, both, wrapped or scaled; settings that all rows share go into the caption.

Widths are measured with Computer Modern, which matplotlib ships: no LaTeX is started.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.formatting import MISSING
from vcpo_bench.reports.writers.tex_text import SPECIAL, is_known

COLUMN, TEXT = 3.18, 6.49
"""Inches of one column and of the text where no venue is named: LaTeX's own article, the narrowest of two columns."""

LONGEST = 40
"""Lines of one float; a longer table becomes several."""

NARROWEST = 10.0
"""Width of a column that wraps, in em, at least."""

BOLD = 1.17
"""How much wider bold letters are."""

SLACK = 1.03
"""Text is set a little wider than measured: hyphens and brackets of other fonts."""


class Size(NamedTuple):
    """A size of text.

    Attributes:
        points: Its size.
        leading: Distance of its lines, in points.
        gap: Half the space between columns, in points.
        breadth: How much wider the font of this size is drawn than the one of ten points, in em.
    """

    points: float
    leading: float
    gap: float
    breadth: float

    @property
    def em(self) -> float:
        """Points by which widths in em are multiplied."""
        return SLACK * self.points * self.breadth

    @property
    def command(self) -> str:
        r"""Sets it. `\small` and the like mean another size in every class."""
        return rf"\fontsize{{{self.points:g}}}{{{self.leading:g}}}\selectfont"


SIZES = (Size(9.0, 11.0, 4.0, 1.03), Size(8.0, 9.5, 3.0, 1.065), Size(7.0, 8.0, 2.5, 1.14))


class TableLayout(NamedTuple):
    """How a table is set.

    Attributes:
        wide: It spans both columns.
        size: Size of its text.
        wrapped: The column whose text is broken into lines; -1: none.
        room: Width of that column in points.
        scaled: It is still too wide and is scaled down to the width.
    """

    wide: bool
    size: Size
    wrapped: int = -1
    room: float = 0.0
    scaled: bool = False

    def lines(self, cells: Sequence[str]) -> int:
        """How many lines a row takes."""
        if self.wrapped < 0:
            return 1
        # words leave a part of every line empty
        return max(1, math.ceil(1.2 * _width(cells[self.wrapped]) * self.size.em / self.room))


def choose(table: Table, column: float, text: float) -> TableLayout:
    """How a table must be set to fit.

    Args:
        table: The table.
        column: Width of one column in inches.
        text: Width of the whole text in inches.
    """
    heads = [_width(heading) for heading in table.headings]
    em = [max(head, *(_wide(row[i]) for row in table.rows)) for i, head in enumerate(heads)] if table.rows else heads
    for wide, inches in ((False, column), (True, text)):
        for size in SIZES if wide or column == text else SIZES[:2]:
            if sum(em) * size.em + 2 * size.gap * len(em) <= inches * 72.27:
                return TableLayout(wide and column != text, size)
    broken = em.index(max(em))
    texts = [table.headings[broken], *(row[broken].text for row in table.rows)]
    word = max(_width(part) for one in texts for part in one.split() or [""])
    for size in SIZES[1:]:
        others = (sum(em) - em[broken]) * size.em + 2 * size.gap * len(em)
        room = text * 72.27 - others
        if room >= max(word, NARROWEST) * size.em:
            return TableLayout(column != text, size, broken, math.floor(room))
    return TableLayout(column != text, SIZES[-1], scaled=True)


def without_constants(table: Table, only: Collection[str] | None = None) -> tuple[Table, str]:
    """The table without the settings in which all rows agree, and what they are, and without columns that are empty.

    Results stay, and so does what a table of one row is about.

    Args:
        table: As it is.
        only: Headings of the columns that may go; None: any.
    """
    several = len(table.rows) > 1
    texts = [{row[i].text.strip() for row in table.rows} for i in range(len(table.headings))]
    constant = [i for i, own in enumerate(texts) if several and (own <= {"", MISSING} or _shared(table, i, own))]
    constant = [i for i in constant if only is None or table.headings[i] in only]
    kept = [i for i in range(len(table.headings)) if i not in constant]
    said = ", ".join(
        f"{table.headings[i]} {table.rows[0][i].text}"
        for i in constant
        if table.rows[0][i].text.strip() not in ("", MISSING)
    )
    rows: list[list[TableCell]] = [[row[i] for i in kept] for row in table.rows]
    numeric = frozenset(kept.index(i) for i in table.numeric if i in kept)
    headings, settings = [table.headings[i] for i in kept], sum(i < table.settings for i in kept)
    return Table(table.name, table.caption, headings, rows, numeric, settings), said


def _shared(table: Table, column: int, texts: set[str]) -> bool:
    """Whether a column is a setting, the same in all rows."""
    return column < table.settings and len(texts) == 1


def parts(table: Table, how: TableLayout) -> list[Table]:
    """The table in pieces of nearly equal length that fit a page."""
    lines = [how.lines([entry.text for entry in row]) for row in table.rows]
    most = math.ceil(sum(lines) / max(1, math.ceil(sum(lines) / LONGEST)))
    pieces: list[list[list[TableCell]]] = [[]]
    used = 0
    for row, needed in zip(table.rows, lines, strict=True):
        if pieces[-1] and used + needed > most:
            pieces.append([])
            used = 0
        pieces[-1].append(row)
        used += needed
    return [replace(table, rows=rows) for rows in pieces]


def _wide(entry: TableCell) -> float:
    return _width(entry.text) * (BOLD if entry.tone == "bad" else 1.0)


@cache
def _width(text: str) -> float:
    """Width of a line of text in Computer Modern Roman, in em."""
    font = FontProperties(fname=_FONT, size=100)
    known = "".join(_as_wide(one) for one in text) or " "
    width: float = TextToPath().get_text_width_height_descent(known, font, ismath=False)[0]
    return width / 100


def _as_wide(letter: str) -> str:
    """Letters of the font that are as wide as what LaTeX sets for a letter: the font has others in some places."""
    if letter in "<>" or (letter in SPECIAL and not letter.isascii()):
        return "+"
    if letter in SPECIAL:
        return "n"
    return letter if letter.isascii() and letter.isprintable() else "n" if is_known(letter) else "[U+0000]"


def _font() -> str:
    from matplotlib import get_data_path

    return f"{get_data_path()}/fonts/ttf/cmr10.ttf"


_FONT = _font()
