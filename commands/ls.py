"""`vcpo-bench ls`: what there is to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def ls(
    what: Annotated[str, typer.Argument(metavar="KIND", help="What to list.")],
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder that holds the results folders, for ls runs.")
    ] = Path("results"),
) -> None:
    """List what there is to choose from, or the runs there are.

    KIND is methods, parts, tasks, regimes, presets or runs.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from vcpo_bench.commands.support.listing import listing
    from vcpo_bench.configs import PRESETS

    found = listing(what, results, PRESETS)
    table = Table(*found.columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in found.rows:
        table.add_row(*row)
    Console(markup=False).print(table)


VERB = Verb(ls, Group.EXTEND, 1, examples=("vcpo-bench ls methods", "vcpo-bench ls runs"))
