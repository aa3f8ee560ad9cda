"""What a file of `commands/` declares, and how its declaration is found."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import typer

from vcpo_bench.commands.support.option_groups import ungrouped
from vcpo_bench.commands.support.verb_command import VerbCommand

GROUPS = ("results", "lab")
"""Folders of `commands/` whose files are verbs of a group, in the order of the help."""


@dataclass(frozen=True)
class Verb:
    """One verb of the command line; a file of `commands/`, or of a group's folder, holds it under the name `VERB`.

    Attributes:
        function: The typer function: options, and calls into the packages below. It imports them when it runs.
        examples: Commands shown under the verb's help, ready to paste.
        order: Position in the help; verbs that share one are in alphabetical order.
        hidden: Whether the help leaves it out: programs call it, not people.
        resumes: Whether the same command goes on where one was stopped.
    """

    function: Callable[..., None]
    examples: tuple[str, ...]
    order: int = 100
    hidden: bool = False
    resumes: bool = False


def folder_of(group: str) -> ModuleType:
    """The package that holds the verbs of a group; empty: those of no group."""
    return importlib.import_module(f"vcpo_bench.commands.{group}" if group else "vcpo_bench.commands")


def verb_names(group: str = "") -> list[str]:
    """What users type for each verb of a group, in alphabetical order; imports none of them."""
    files = (module.name for module in pkgutil.iter_modules(folder_of(group).__path__) if not module.ispkg)
    return sorted(name.replace("_", "-") for name in files)


def load_verb(group: str, name: str) -> Verb:
    """Import one verb."""
    module: Any = importlib.import_module(f"{folder_of(group).__name__}.{name.replace('-', '_')}")
    verb: Verb = module.VERB
    return verb


def find_verbs(group: str = "") -> dict[str, Verb]:
    """Every verb of a group by the name users type, in the order of the help."""
    verbs = {name: load_verb(group, name) for name in verb_names(group)}
    return dict(sorted(verbs.items(), key=lambda item: (item[1].order, item[0])))


def as_command(name: str, verb: Verb) -> Any:
    """The click command of a verb."""
    title = "Example:" if len(verb.examples) == 1 else "Examples:"
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    register = alone.command(
        name,
        cls=VerbCommand,
        help=_flowing(verb),
        # A blank line between examples: some releases of typer join the lines of one paragraph.
        epilog="\n\n".join([title, *verb.examples]),
        hidden=verb.hidden,
        context_settings={"obj": verb},
    )
    register(ungrouped(verb.function))
    return typer.main.get_command(alone)


def _flowing(verb: Verb) -> str:
    """The docstring with one line per paragraph: the terminal wraps it, not the source file."""
    text = inspect.cleandoc(verb.function.__doc__ or "")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
