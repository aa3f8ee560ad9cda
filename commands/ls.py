"""`vcpo-bench ls`: what there is to choose from."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb

if TYPE_CHECKING:
    from vcpo_bench.commands.support.kinds.base import Listing


def ls(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="Kind of things to list, such as methods or tasks.", show_default="list the kinds"
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print every column, uncut, as JSON.")] = False,
    plugin: Plugins = None,
) -> None:
    """List the methods, tasks, regimes and so on.

    Without KIND it lists the kinds. One line per entry: a terminal shows what fits, a pipe or a file gets every column.
    vcpo-bench show explains a single entry.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds_listing

    load_plugins(plugin)
    if not kind:
        _print(kinds_listing(), as_json)
        return
    _print(find_kind(kind, plural=True).listing(), as_json)


def _print(listing: Listing, as_json: bool) -> None:
    if as_json:
        names = [heading.replace(" ", "_") for heading in listing.columns]
        say(json.dumps([dict(zip(names, row, strict=True)) for row in listing.rows], indent=1, ensure_ascii=False))
        return
    limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if limited else None
    for line in lines_of(listing, width):
        say(line)
    if listing.note:
        say("\n" + (textwrap.fill(listing.note, width) if width else listing.note))


VERB = Verb(
    ls,
    order=7,
    examples=("vcpo-bench ls methods --json", "vcpo-bench ls tasks --plugin my_task.py"),
)


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
