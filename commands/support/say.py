"""The one way in which verbs print text: names, errors and episodes in it are shown, never obeyed."""

from __future__ import annotations

from contextlib import suppress

import typer

from vcpo_bench.reports.terminal.printable import one_printable_line, printable


def say(text: object) -> None:
    """Print an answer."""
    typer.echo(printable(str(text)))


def say_aside(text: object) -> None:
    """Print one line about what happens, to the error output; where that cannot be written, nobody can be told."""
    with suppress(OSError):
        typer.echo(one_printable_line(str(text)), err=True)
