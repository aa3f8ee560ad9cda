"""`vcpo-bench ls`: what there is to choose from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.options import Plugins
from vcpo_bench.commands.support.plugins import load_plugins
from vcpo_bench.commands.support.verb import Group, Verb

if TYPE_CHECKING:
    from vcpo_bench.commands.support.kinds.base import Listing

UNLIMITED = 10_000
"""Columns of a listing that goes to a pipe or a file: one entry stays one line."""


def ls(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="Kind of things to list, such as methods or runs.", show_default="list the kinds"
        ),
    ] = "",
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder that holds the results folders, for vcpo-bench ls runs.")
    ] = Path("results"),
    plugin: Plugins = None,
) -> None:
    """List the methods, tasks, regimes and so on.

    KIND is methods, parts, tasks, regimes, optimizers, samplers, launchers, signals, detectors, analyses, presets or
    runs. vcpo-bench show explains a single entry.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds_listing

    load_plugins(plugin)
    if not kind:
        _print(kinds_listing())
        return
    _print(find_kind(kind, results, plural=True).listing())


def _print(found: Listing) -> None:
    from rich import box
    from rich.table import Table

    from vcpo_bench.reports.terminal.plain_console import PlainConsole

    limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = PlainConsole(width=None if limited else UNLIMITED)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(found.columns):
        table.add_column(heading, no_wrap=number == 0, overflow="fold")
    for row in found.rows:
        table.add_row(*row)
    console.print(table)
    if found.note:
        console.print(found.note)


VERB = Verb(
    ls,
    Group.EXTEND,
    1,
    examples=("vcpo-bench ls methods", "vcpo-bench ls tasks --plugin my_task.py", "vcpo-bench ls runs"),
)
