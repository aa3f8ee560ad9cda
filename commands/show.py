"""`vcpo-bench show`: a results folder, or one thing by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Group, Verb


def show(
    what: Annotated[str, typer.Argument(metavar="DIR|KIND", help="Results folder, or the word method.")] = str(
        DEFAULT_OUT
    ),
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the method, after the word method.")] = "",
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.")] = False,
) -> None:
    """Show the scoreboard of a results folder, or explain a method.

    A scoreboard is also written to scoreboard.csv in the results folder.
    """
    if what == "method":
        from vcpo_bench.commands.support.listing import method_page

        typer.echo("\n".join(method_page(name)))
    else:
        show_scoreboard(Path(what), as_json)


VERB = Verb(show, Group.READ, 1, examples=("vcpo-bench show results/default", "vcpo-bench show method vespo"))
