"""`vcpo-bench new`: the first version of a method, task, regime or signal of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.verb import Verb


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What to write: method, task, regime or signal.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in expressions, such as my-method.")],
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write the two files to.")] = Path(),
) -> None:
    """Write a working method, task, regime or signal, and its test.

    The generated test passes unchanged: run pytest on it, and pass the other file to any verb with --plugin.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds
    from vcpo_bench.errors import UsageError

    found = find_kind(kind, template=True)
    if not found.has_template:
        written = ", ".join(one.singular for one in kinds() if one.has_template)
        raise UsageError(f"new {found.singular}: there is no template for it; write one of: {written}")
    file, test = found.write_new(name, folder)
    say(file)
    say(test)
    say_aside(f"next: pytest {test}; vcpo-bench show {found.singular} {name} --plugin {file}")


VERB = Verb(new, order=8, examples=("vcpo-bench new method my-method", "vcpo-bench new task my-task --folder mine"))
