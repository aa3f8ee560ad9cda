"""`vcpo-bench show`: a results folder, or one thing by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Plugins
from vcpo_bench.commands.support.plugins import load_plugins
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Verb


def show(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR... | KIND NAME",
            help="Results folders, which are pooled; or a kind, such as method, and a name that vcpo-bench ls lists.",
            show_default=str(DEFAULT_OUT),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.")] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help='Exit with code 1 if a row of the scoreboard meets this, such as "collapsed > 0". Repeat for several.',
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Show the scoreboard of a results folder, or explain one entry.

    The scoreboard of one folder is also written to scoreboard.csv there. KIND is any kind that vcpo-bench ls lists, in
    the singular. A condition may name the rows it is about: "method=vcpo,lag=16: final_reward_low < 0.5".
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds
    from vcpo_bench.errors import UsageError

    first, *rest = what or [str(DEFAULT_OUT)]
    named = {word: kind for kind in kinds() for word in (kind.singular, kind.plural)}
    if not rest and first in named and not Path(first).is_dir():
        raise UsageError(f"show {first}: give a name; vcpo-bench ls {named[first].plural} lists them")
    if len(rest) != 1 or (first not in named and Path(first).is_dir()):
        if show_scoreboard(Path(first), as_json, *map(Path, rest), fail_if=fail_if or ()):
            raise typer.Exit(1)
        return
    if fail_if:
        raise UsageError(f"--fail-if: is asked of a scoreboard; show {first} {rest[0]} has none")
    kind = find_kind(first)
    load_plugins(plugin)
    kind.show(rest[0], as_json)


VERB = Verb(
    show,
    order=2,
    examples=(
        "vcpo-bench show results/default",
        "vcpo-bench show method vespo",
        'vcpo-bench show results/sweep --fail-if "collapsed > 0"',
    ),
)
