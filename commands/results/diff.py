"""`vcpo-bench results diff`: two results folders compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.outputs import check_file
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="First results folder.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Second results folder.")],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparison to an HTML page instead of printing it.")
    ] = None,
) -> None:
    """Compare two results folders: changes, and conclusions that flip."""
    from vcpo_bench.reports import diff as comparing

    check_file("--html", html)
    say(comparing.write_diff(first, second, html) if html else comparing.diff(first, second).text)


VERB = Verb(diff, examples=("vcpo-bench results diff results/default results/default-lr1e-4",))
