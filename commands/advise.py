"""`vcpo-bench advise`: which method at a lag."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def advise(
    lag: Annotated[int, typer.Option(min=0, metavar="K", help="Policy lag of your training data, in updates.")],
    length: Annotated[int | None, typer.Option(min=1, metavar="TOKENS", help="Usual length of a response.")] = None,
    can_tune: Annotated[
        bool, typer.Option("--can-tune", metavar="", help="You can try several learning rates.")
    ] = False,
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
    say(json.dumps(asdict(found), indent=2, allow_nan=False) if as_json else advice_text(found, can_tune))


VERB = Verb(advise, order=4, examples=("vcpo-bench advise --lag 8", "vcpo-bench advise --lag 16 --length 2000 --json"))
