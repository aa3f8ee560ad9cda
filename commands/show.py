"""`vcpo-bench show`: a results folder, or one thing by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Plugins, load_plugins
from vcpo_bench.commands.support.say import say
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
    trainer: Annotated[
        str | None,
        typer.Option(
            "--in", metavar="TRAINER", help="What to set there for the method: trl, verl, prime-rl, slime, skyrl, ..."
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Show the scoreboard of a results folder, or explain one entry.

    The scoreboard of one folder is also written to scoreboard.csv there. KIND is any kind that vcpo-bench ls lists, in
    the singular. A condition may name the rows it is about: "method=vcpo,lag=16: final_reward_low < 0.5";
    controls count where their method is named.
    """
    from vcpo_bench.commands.support.kinds.find import find_kind, kinds
    from vcpo_bench.errors import UsageError

    first, *rest = what or [str(DEFAULT_OUT)]
    named = {word: kind for kind in kinds() for word in (kind.singular, kind.plural)}
    if not rest and first in named and not Path(first).is_dir():
        raise UsageError(f"show {first}: give a name; vcpo-bench ls {named[first].plural} lists them")
    if not rest and what and len(Path(first).parts) == 1 and not Path(first).exists():
        raise UsageError(f"show {first}: there is no such folder; to explain a method: vcpo-bench show method {first}")
    if trainer and (len(rest) != 1 or first not in ("method", "methods")):
        raise UsageError(f"--in {trainer}: is asked of a method; write vcpo-bench show method NAME --in {trainer}")
    if len(rest) != 1 or (first not in named and Path(first).is_dir()):
        show_scoreboard(Path(first), as_json, *map(Path, rest), fail_if=fail_if or ())
        return
    if fail_if:
        raise UsageError(f"--fail-if: is asked of a scoreboard; show {first} {rest[0]} has none")
    kind = find_kind(first)
    load_plugins(plugin)
    if trainer:
        show_recipe(rest[0], trainer, as_json)
    else:
        if as_json:
            raise UsageError(f"--json: only a scoreboard can be printed as JSON; a {kind.singular} is text")
        say("\n".join(kind.page(rest[0])))


def show_recipe(method: str, trainer: str, as_json: bool) -> None:
    """Print what to set in a trainer for a method."""
    from vcpo_bench.adapters.recipes import recipe
    from vcpo_bench.methods import parse_method

    found = recipe(parse_method(method), trainer)
    if as_json:
        say(json.dumps(found._asdict()))
        return
    if not found.exact:
        say(f"{method} in {trainer}: {found.lines[0]}")
        return
    say(f"{method} in {trainer}, by {found.way}, equal to {found.exact}:")
    for line in found.lines:
        say(f"  {line}")
    if "(anchor=proximal" in found.exact and "anchor=proximal" not in method:
        say("The ratio is to the policy at the start of a batch: with one update per batch it is 1.")


VERB = Verb(
    show,
    order=2,
    examples=(
        "vcpo-bench show results/default",
        "vcpo-bench show method vespo",
        "vcpo-bench show method clip --in trl",
        'vcpo-bench show results/sweep --fail-if "collapsed > 0"',
    ),
)
