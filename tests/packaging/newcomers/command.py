"""`vcpo-bench newcomer`: nothing."""

from __future__ import annotations

from vcpo_bench.commands.support.verb import Group, Verb


def newcomer() -> None:
    """Print nothing."""


VERB = Verb(newcomer, Group.EXTEND, 9, examples=("vcpo-bench newcomer",))
