"""`vcpo-bench show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Group, Verb


def show(
    what: Annotated[str, typer.Argument(help="Results folder; or the word method.")] = str(DEFAULT_OUT),
    name: Annotated[str, typer.Argument(help="After method: its name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the scoreboard of a results folder (and write its scoreboard.csv), or a method: show method vespo."""
    if what == "method":
        from vcpo_bench.commands.support.listing import method_page

        typer.echo("\n".join(method_page(name)))
    else:
        show_scoreboard(Path(what), as_json)


VERB = Verb(show, Group.READ, 6, examples=())
