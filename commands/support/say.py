"""The one way in which verbs print text: names, errors and episodes in it are shown, never obeyed."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from contextlib import suppress

import typer

from vcpo_bench.reports.terminal.printable import one_printable_line, printable

_COPIED = re.compile(r"(\d+\. )?(--|\S+=|\S+: \{|[\[{]|load_plugin|vcpo-bench |\$ )|Try next")
"""How lines begin that people copy: settings of a trainer and commands."""


def say(text: object) -> None:
    """Print an answer."""
    typer.echo(printable(str(text)))


def say_prose(text: object) -> None:
    """Print an answer in sentences; a terminal gets them wrapped between words, except commands and columns."""
    lines = printable(str(text)).split("\n")
    width = _columns()
    typer.echo("\n".join(_wrapped(line, width) if width else line for line in lines))


def _columns() -> int:
    """Of the terminal that standard output is; 0: it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _wrapped(line: str, width: int) -> str:
    body = line.lstrip(" ")
    if len(line) <= width or _COPIED.match(body) or "  " in body:
        return line
    first = " " * (len(line) - len(body))
    later = first + "  " * bool(first)
    wrap = textwrap.TextWrapper(
        width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False, break_long_words=False
    )
    return wrap.fill(body)


def say_aside(text: object) -> None:
    """Print one line about what happens, to the error output; where that cannot be written, nobody can be told."""
    with suppress(OSError):
        typer.echo(one_printable_line(str(text)), err=True)
