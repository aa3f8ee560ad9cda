"""What the style files of venues leave for figures: widths, and the letters of their text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from vcpo_bench.errors import UsageError
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.plots.letters import BRIGHT, ROMAN, SANS, TIMES, Letters


@dataclass(frozen=True)
class Venue:
    """What a venue's style file leaves for figures.

    Attributes:
        column: Width of one column, in inches.
        text: Width of the whole text, in inches.
        font: Size of labels in points; tick labels and legends are one smaller, and 7 at least.
        panel: Height of a row of panels, in inches.
        height: Height of a whole figure, in inches, at most: a slide with its title leaves no more.
        letters: As in the text of its papers.
    """

    column: float
    text: float
    font: float = 8.0
    panel: float = 1.35
    height: float = math.inf
    letters: Letters = TIMES


VENUES = {
    "icml": Venue(3.25, 6.75),
    "neurips": Venue(5.5, 5.5),
    "iclr": Venue(5.5, 5.5),
    "jmlr": Venue(6.0, 6.0, font=9.0, letters=ROMAN),
    "tmlr": Venue(6.5, 6.5, letters=BRIGHT),
    "acl": Venue(3.03, 6.3),
    "nature": Venue(3.5, 7.2, letters=SANS),
    "beamer": Venue(5.5, 5.5, font=10.0, panel=1.6, height=2.8, letters=BRIGHT),
}
"""Widths and letters of icml2025.sty, neurips_2025.sty, iclr2026_conference.sty, jmlr2e.sty, tmlr.sty and acl.sty."""

_CUSTOM = re.compile(r"(?P<width>[0-9.]+)(?:x(?P<height>[0-9.]+))?in(?:@(?P<font>[0-9.]+)pt)?")


def find_venue(text: str) -> Venue:
    """The venue of that name, or sizes of the user's own: `4in`, `4x1.5in`, `4x1.5in@9pt` (width, panel height, font).

    Raises:
        UsageError: It is neither, or no figure has that size.
    """
    custom = _CUSTOM.fullmatch(text)
    if text in VENUES:
        return VENUES[text]
    try:
        width, height, font = (float(custom[name] or usual) for name, usual in _USUAL) if custom else (0.0, 0.0, 0.0)
    except ValueError:
        width = height = font = 0.0
    if not (1.5 <= width <= 40 and 0.5 <= height <= 20 and 7 <= font <= 40):
        raise UsageError(
            f"no venue {text!r}: choose one of {', '.join(VENUES)}, or give width, panel height and font size such as "
            "4x1.5in@9pt (at least 1.5 and 0.5 inches, and 7 points)"
        )
    return Venue(width, width, font, height)


_USUAL = (("width", 0.0), ("height", 1.35), ("font", 8.0))


def sheets(venue: str) -> tuple[Sheet, Sheet]:
    """The sheets of one column and of the whole text width.

    Raises:
        UsageError: See `find_venue`.
    """
    sizes = find_venue(venue)
    return (
        Sheet(sizes.column, sizes.panel, sizes.font, legend=True, most_columns=2, most_height=sizes.height),
        Sheet(sizes.text, sizes.panel, sizes.font, legend=True, most_columns=4, most_height=sizes.height),
    )
