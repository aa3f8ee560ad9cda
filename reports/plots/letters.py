"""The letters of figures: fonts that ship with matplotlib, so that a figure is the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.text import Text


@dataclass(frozen=True)
class Letters:
    """Fonts of a figure.

    Attributes:
        families: Fonts by name; what the first does not have comes from the next.
        math: Matplotlib's set of fonts for mathematics.
        others: Fonts that stand in for them where a drawing with editable text is opened.
        wrong: Characters that the first font has another sign for.
    """

    families: tuple[str, ...]
    math: str
    others: str
    wrong: frozenset[str] = frozenset()


_OF_TEX = frozenset('<>|_{}"~^')
"""Where TeX's own encoding has other signs: its fonts in matplotlib follow it."""

SANS = Letters(("DejaVu Sans",), "dejavusans", "Verdana, Helvetica, Arial, sans-serif")
"""Of pages and screens."""

TIMES = Letters(("STIXGeneral",), "stix", "'STIX Two Text', 'Times New Roman', Times, serif")

ROMAN = Letters(("cmr10", "STIXGeneral"), "cm", "'CMU Serif', 'Latin Modern Roman', serif", _OF_TEX)
"""Computer Modern, what LaTeX writes unless told otherwise."""

BRIGHT = Letters(("cmss10", "DejaVu Sans"), "dejavusans", "'CMU Sans Serif', 'Latin Modern Sans', sans-serif", _OF_TEX)
"""Computer Modern without serifs, which CM Bright is drawn after."""


def spell(figure: Figure, letters: Letters) -> None:
    """Give texts with characters that the first font has other signs for to the last font."""
    if not letters.wrong:
        return
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_ticklabels()  # writes them
    for text in figure.findobj(Text):
        if isinstance(text, Text) and letters.wrong & set(text.get_text()) and not text.get_parse_math():
            text.set_fontfamily(letters.families[-1])
