"""A group of verbs as a click command, which imports a verb when it is asked for it."""

from __future__ import annotations

from contextlib import nullcontext
from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

from vcpo_bench.commands.support.verb import GROUPS, as_command, find_verbs, folder_of, load_verb, verb_names
from vcpo_bench.commands.support.verb_command import hide_types, one_line
from vcpo_bench.errors import UsageError


class VerbGroup(TyperGroup):
    """The verbs of one folder.

    Args:
        group: Which; empty: those of no group, and the groups.
        more: As click has it.
    """

    def __init__(self, *, group: str = "", **more: Any) -> None:
        super().__init__(**more)
        self.group = group

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the help."""
        return [*find_verbs(self.group), *self._groups(), *self.commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb or group of that name; None: there is none."""
        if cmd_name in self._groups():
            return _group(cmd_name)
        if cmd_name in verb_names(self.group):
            return as_command(cmd_name, load_verb(self.group, cmd_name))
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the verb; without anything the help is shown.

        Raises:
            UsageError: It cannot be read.
        """
        with one_line(ctx) if args else nullcontext():
            rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb and its arguments.

        Raises:
            UsageError: There is no such verb here; says where it is, or which is meant.
        """
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name)):
            raise UsageError(f"{ctx.command_path} {name}: there is no such command; {_hint(name)}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        hide_types(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def _groups(self) -> tuple[str, ...]:
        return () if self.group else GROUPS


def _group(name: str) -> VerbGroup:
    return VerbGroup(
        group=name,
        name=name,
        help=folder_of(name).__doc__,
        no_args_is_help=True,
        rich_markup_mode="rich",
        rich_help_panel="Groups of commands",
    )


def _hint(name: str) -> str:
    """Where a verb of that name is, or one that is meant."""
    places = {verb: f"vcpo-bench {group} {verb}" for group in GROUPS for verb in verb_names(group)}
    places |= {verb: f"vcpo-bench {verb}" for verb in (*GROUPS, *verb_names())}
    if name in places:
        return f"write {places[name]}"
    meant = [places[verb] for verb in get_close_matches(name, places)]
    return f"did you mean {' or '.join(meant)}?" if meant else "vcpo-bench --help lists them"
