"""`vcpo-bench plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def plan_command(
    regime: Annotated[str, typer.Option(help="Regime expression (ls regimes).")] = "fifo",
    staleness: Annotated[int, typer.Option(min=0, help="Largest lag in optimizer updates.")] = 16,
    steps: Annotated[int, typer.Option(min=1, help="Updates to draw.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random lags and shuffles.")] = 0,
    simulate: Annotated[bool, typer.Option("--simulate", help="Speed of async under its service times.")] = False,
) -> None:
    """Draw which update consumes which version of the weights, and print the largest and mean lag and the period."""
    from vcpo_bench.bench.regimes.simulation import describe, describe_speed

    typer.echo((describe_speed if simulate else describe)(regime, staleness, steps, seed))


VERB = Verb(plan_command, Group.TRAIN, 3, examples=())
