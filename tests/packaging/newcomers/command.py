"""`vcpo-bench lab newcomer`: nothing."""

from __future__ import annotations

from vcpo_bench.commands.support.verb import Verb


def newcomer() -> None:
    """Print nothing."""


VERB = Verb(newcomer, examples=("vcpo-bench lab newcomer",))
