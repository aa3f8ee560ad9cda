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
        str,
        typer.Argument(metavar="NAME", help="One entry of that kind; parameters may follow, as in chain(n=8)."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the scoreboard as JSON.")] = False,
    plugin: Plugins = None,
) -> None:
    """Show the scoreboard of a results folder, or explain one entry.

    A scoreboard is also written to scoreboard.csv in its folder. KIND is method, part, task, regime, sampler, signal,
    detector, analysis, preset or run.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds
    from vcpo_bench.errors import UsageError

    if not name:
        named = [kind for kind in kinds() if what in (kind.singular, kind.plural)]
        if named and not Path(what).is_dir():
            raise UsageError(f"show {what}: give a name; vcpo-bench ls {named[0].plural} lists them")
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
