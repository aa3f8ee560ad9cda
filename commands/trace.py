"""`vcpo-bench trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.verb import Group, Verb


def trace(
    number: Annotated[str, typer.Argument(help="Id of a number in a report.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="The results the report was made from.")] = None,
) -> None:
    """Show the rows behind a number of a report."""
    from vcpo_bench.reports.trace import trace as find

    typer.echo(find(folders or [DEFAULT_OUT], number).text)


VERB = Verb(trace, Group.READ, 11, examples=())
