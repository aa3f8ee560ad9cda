"""`vcpo-bench doctor`: what this environment can do."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Group, Verb


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", metavar="", help="Also run the checks that need a GPU.")] = False,
) -> None:
    """Check versions, optional extras and devices of this environment.

    Exits with code 1 if a check fails.
    """
    from vcpo_bench.bench.machine import doctor as examining
    from vcpo_bench.bench.machine.gpu_checks import gpu_checks

    failed = False
    for finding in [*examining.examine(), *(gpu_checks() if gpu else ())]:
        say(f"{finding.status:8} {finding.name}: {finding.text}")
        failed |= finding.status == "failed"
    if failed:
        raise typer.Exit(1)


VERB = Verb(doctor, Group.EXTEND, 3, examples=("vcpo-bench doctor", "vcpo-bench doctor --gpu"))
