"""A listing as lines of text: one per entry, whatever the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcpo_bench.commands.support.kinds.base import Listing

GAP = "  "
READABLE = 40
"""Columns that the second column, which says what an entry is, keeps before another one is shown."""
CUT = "..."


def lines_of(listing: Listing, width: int | None) -> list[str]:
    """The heading, a rule and a line per entry.

    Args:
        listing: What to show.
        width: Columns of the terminal: those of the listing that do not fit are left out, and what an entry is gets
            cut. None: everything is shown.
    """
    table = [listing.columns, *(tuple(" ".join(str(cell).split()) for cell in row) for row in listing.rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(listing.columns))]
    shown = list(range(len(widths))) if width is None else _fitting(widths, width)
    if width is not None:
        others = sum(widths[place] + len(GAP) for place in shown if place != 1)
        widths[1] = min(widths[1], max(width - others, len(CUT)))
    cut = [GAP.join(_cell(row[place], widths[place]) for place in shown).rstrip() for row in table]
    return [cut[0], GAP.join("-" * widths[place] for place in shown), *cut[1:]]


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """The first two columns, and those after them that fit in full beside a readable second one."""
    shown = [0, 1]
    left = width - widths[0] - len(GAP) - min(widths[1], READABLE)
    for place in range(2, len(widths)):
        if widths[place] + len(GAP) <= left:
            shown.append(place)
            left -= widths[place] + len(GAP)
    return shown


def _cell(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - len(CUT)].rstrip() + CUT).ljust(width)
