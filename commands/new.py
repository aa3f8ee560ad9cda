"""`vcpo-bench new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb
from vcpo_bench.errors import UsageError


def new(
    what: Annotated[str, typer.Argument(help="method.")],
    name: Annotated[str, typer.Argument(help="Its name in expressions, such as my-method.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
) -> None:
    """Write a working method of your own and its test: new method NAME."""
    from vcpo_bench.methods import new_method

    if what != "method":
        raise UsageError(f"new {what}: only 'new method NAME' exists")
    for path in new_method(name, folder):
        typer.echo(path)


VERB = Verb(new, Group.SETUP, 16, examples=())
