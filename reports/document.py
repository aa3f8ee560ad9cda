"""A report independent of its format: sections of sentences, tables and figures, for HTML, PDF and export alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.numbers import Ledger, Number

Tone = Literal["", "bad", "dim"]
DrawPlot = Callable[[Sheet], Plot | None]


@dataclass(frozen=True)
class TableCell:
    """One cell of a table: its text, the number behind it, what it sorts by, its emphasis, the anchor it links to."""

    text: str
    number: Number | None = None
    sort: float | str | None = None
    tone: Tone = ""
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: Anchor and file name.
        caption: What it holds.
        headings: One per column.
        rows: An entry per column each.
        numeric: Columns of numbers.
        settings: How many columns, the first ones, say what a row is about; the others are results.
    """

    name: str
    caption: str
    headings: list[str]
    rows: list[list[TableCell]]
    numeric: frozenset[int] = frozenset()
    settings: int = 0


@dataclass(frozen=True)
class Sentence:
    """A statement made of text and numbers; `tone` bad marks a warning."""

    parts: tuple[str | Number, ...]
    tone: Tone = ""

    @property
    def text(self) -> str:
        """The statement as plain text."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)


@dataclass(frozen=True)
class Prose:
    """Statements, as a paragraph or as a list."""

    sentences: list[Sentence]
    bullets: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure that is still to be drawn; drawing may find that there is nothing to draw.

    Attributes:
        name: Of the figure, once it is drawn.
        draw: Draws it.
        wide: In a paper with two columns it needs both.
        needs: The results without which there is nothing to draw.
    """

    name: str
    draw: DrawPlot
    wide: bool = False
    needs: str = "what it shows"


Block = Table | Prose | Picture


@dataclass
class Section:
    """A heading with its anchor and content; a section without content is left out, a folded one opens on demand."""

    anchor: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    folded: bool = False


@dataclass
class Document:
    """A whole report: title, sections in order, and the ledger of its numbers."""

    title: str
    sections: list[Section]
    ledger: Ledger


def sentence(*parts: str | Number, tone: Tone = "") -> Sentence:
    """Shorthand for a `Sentence`."""
    return Sentence(tuple(parts), tone)
