"""`vcpo-bench results trace`: from a report back to the recorded rows."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders, Plugins, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def trace(
    number: Annotated[
        str, typer.Argument(metavar="ID", help="Id of a number or statement, as the report shows it on a click.")
    ],
    folders: Folders = None,
    plugin: Plugins = None,
) -> None:
    """Show the recorded rows behind a number or statement of a report."""
    from vcpo_bench.reports.trace import trace as find

    load_plugins(plugin)
    say(find(folders or [DEFAULT_OUT], number).text)


VERB = Verb(trace, examples=("vcpo-bench results trace final_reward-1a2b3c4d results/default",))
