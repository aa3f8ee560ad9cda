"""`vcpo-bench diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def diff(
    first: Annotated[Path, typer.Argument(help="Results folder A.")],
    second: Annotated[Path, typer.Argument(help="Results folder B.")],
    html: Annotated[Path | None, typer.Option(help="Write it as a page instead.")] = None,
) -> None:
    """What changed between two results folders, and which conclusions flip."""
    from vcpo_bench.reports import diff as comparing

    typer.echo(comparing.write_diff(first, second, html) if html else comparing.diff(first, second).text)


VERB = Verb(diff, Group.READ, 8, examples=())
