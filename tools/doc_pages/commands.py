"""The table of commands in `docs/commands.md`, from the commands themselves."""

from collections.abc import Iterator
from typing import Any

from typer import Context
from typer.main import get_command

from doc_pages.marked import with_table
from vcpo_bench.cli import app


def commands(group: Any, words: tuple[str, ...] = ("vcpo-bench",)) -> Iterator[tuple[str, str]]:
    """Every command below a group, as it is typed, and what it does."""
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*words, name))
        elif not command.hidden:
            yield " ".join((*words, name)), command.get_short_help_str(limit=200)


def page() -> str:
    """The page with its table made anew."""
    rows = [f"| `{typed}` | {does} |" for typed, does in commands(get_command(app))]
    return with_table("docs/commands.md", "\n".join(["| command | what it does |", "|---|---|", *rows, ""]))
