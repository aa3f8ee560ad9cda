"""`vcpo-bench new`: the first version of a method of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb
from vcpo_bench.errors import UsageError


def new(
    what: Annotated[str, typer.Argument(metavar="KIND", help="The word method.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in expressions, such as my-method.")],
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write the two files to.")] = Path(),
) -> None:
    """Write a working method of your own and its test."""
    from vcpo_bench.methods import new_method

    if what != "method":
        raise UsageError(f"new {what}: only 'new method NAME' exists")
    for path in new_method(name, folder):
        typer.echo(path)


VERB = Verb(new, Group.EXTEND, 2, examples=("vcpo-bench new method my-method",))
