"""`vcpo-bench advise`: which method at a lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.say import say, say_prose
from vcpo_bench.commands.support.verb import Verb

if TYPE_CHECKING:
    from vcpo_bench.analysis.advice import Recommendation


def advise(
    lag: Annotated[int, typer.Option(min=0, metavar="K", help="Policy lag of your training data, in updates.")],
    length: Annotated[int | None, typer.Option(min=1, metavar="TOKENS", help="Usual length of a response.")] = None,
    can_tune: Annotated[
        bool, typer.Option("--can-tune", metavar="", help="You can try several learning rates.")
    ] = False,
    trainer: Annotated[
        str, typer.Option(metavar="NAME", help="Also print what to set there: trl, verl, prime-rl, slime, skyrl, ...")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which method to use at a lag, and how sure that is.

    From the tables of our studies and of papers that come with the package; nothing runs.
    """
    import json
    from dataclasses import asdict

    from vcpo_bench.analysis.advice import advise as find
    from vcpo_bench.reports.terminal.advice import advice_text

    found = find(lag, length)
    lines = _lines(found, trainer) if trainer else []
    if as_json:
        say(json.dumps(asdict(found) | ({"trainer": trainer, "set": lines} if trainer else {}), indent=2))
    else:
        settings = ["\n".join([f"In {trainer}:", *lines])] if trainer else []
        say_prose("\n\n".join([advice_text(found, can_tune), *settings]))


def _lines(found: Recommendation, trainer: str) -> list[str]:
    """What to set for each method, or why this trainer cannot carry it."""
    from vcpo_bench.adapters.recipes import check_trainer, recipe
    from vcpo_bench.methods import parse_method

    check_trainer(trainer)
    if found.keep:
        return ["  nothing to set"]
    lines: list[str] = []
    for method in [one.method for one in found.use] or [one.method for one in found.earned if not one.failed]:
        how = recipe(parse_method(method), trainer, under_lag=True)
        head, *rest = [f"  {method}:", *how.lines] if how.exact else [f"  {method}: {how.lines[0]}"]
        lines += [head, *(f"    {line}" for line in rest)]
    return lines or ["  no study of ours reaches this lag, so there is nothing to set"]


VERB = Verb(
    advise,
    order=4,
    examples=("vcpo-bench advise --lag 8 --trainer verl", "vcpo-bench advise --lag 16 --length 2000 --json"),
)
