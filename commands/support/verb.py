"""What a file of `commands/` declares, and how the app finds all of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import typer

import vcpo_bench.commands
from vcpo_bench.commands.support.option_groups import ungrouped
from vcpo_bench.commands.support.verb_command import VerbCommand


class Group(Enum):
    """The panels of `vcpo-bench --help`, in the order they are shown."""

    TRAIN = "Train"
    READ = "Read results"
    INVESTIGATE = "Investigate recorded runs"
    EXTEND = "Explore and extend"


@dataclass(frozen=True)
class Verb:
    """One verb of the command line; a file of `commands/` holds it under the name `VERB`.

    Attributes:
        function: The typer function: options, and calls into the packages below. It imports them when it runs.
        group: Panel of the help.
        order: Position in that panel, from 1; no two verbs of a group share one.
        examples: Commands shown under the verb's help, ready to paste.
        hidden: Whether the help leaves it out: programs call it, not people.
        resumes: Whether the same command goes on where one was stopped.
    """

    function: Callable[..., None]
    group: Group
    order: int
    examples: tuple[str, ...]
    hidden: bool = False
    resumes: bool = False


def find_verbs() -> dict[str, Verb]:
    """Every verb by the name users type, in the order of the help."""
    found = dict(_declared())
    groups = list(Group)
    return dict(sorted(found.items(), key=lambda item: (groups.index(item[1].group), item[1].order, item[0])))


def attach_verbs(app: typer.Typer) -> None:
    """Put every verb on the app."""
    for name, verb in find_verbs().items():
        title = "Example:" if len(verb.examples) == 1 else "Examples:"
        # A blank line between examples: some releases of typer join the lines of one paragraph.
        epilog = "\n\n".join([title, *verb.examples])
        register = app.command(
            name,
            cls=VerbCommand,
            rich_help_panel=verb.group.value,
            help=_flowing(verb),
            epilog=epilog,
            hidden=verb.hidden,
            context_settings={"obj": verb},
        )
        register(ungrouped(verb.function))


def _flowing(verb: Verb) -> str:
    """The docstring with one line per paragraph: the terminal wraps it, not the source file."""
    text = inspect.cleandoc(verb.function.__doc__ or "")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _declared() -> Iterator[tuple[str, Verb]]:
    for module in pkgutil.iter_modules(vcpo_bench.commands.__path__):
        if not module.ispkg:
            loaded: Any = importlib.import_module(f"{vcpo_bench.commands.__name__}.{module.name}")
            yield module.name.replace("_", "-"), loaded.VERB
