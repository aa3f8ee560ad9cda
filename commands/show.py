"""`vcpo-bench show`: a results folder, or one thing by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Plugins
from vcpo_bench.commands.support.plugins import load_plugins
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Group, Verb


def show(
    what: Annotated[
        str,
        typer.Argument(metavar="DIR|KIND", help="Results folder; or a kind, such as method, with a name after it."),
    ] = str(DEFAULT_OUT),
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of one entry of that kind; vcpo-bench ls lists them.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.")] = False,
    plugin: Plugins = None,
) -> None:
    """Show the scoreboard of a results folder, or explain one entry.

    A scoreboard is also written to scoreboard.csv in its folder. KIND is method, part, task, regime, sampler, signal,
    detector, analysis, preset or run.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind

    if not name:
        show_scoreboard(Path(what), as_json)
        return
    kind = find_kind(what)
    load_plugins(plugin)
    kind.show(name, as_json)


VERB = Verb(
    show,
    Group.READ,
    1,
    examples=("vcpo-bench show results/default", "vcpo-bench show method vespo", "vcpo-bench show task chain"),
)
