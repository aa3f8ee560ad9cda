"""`vcpo-bench doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", help="Run the checks that need a GPU.")] = False,
) -> None:
    """What this environment can do: versions, extras, devices."""
    from vcpo_bench.bench.machine import doctor as examining
    from vcpo_bench.bench.machine.gpu_checks import gpu_checks

    failed = False
    for finding in [*examining.examine(), *(gpu_checks() if gpu else ())]:
        typer.echo(f"{finding.status:8} {finding.name}: {finding.text}")
        failed |= finding.status == "failed"
    if failed:
        raise typer.Exit(1)


VERB = Verb(doctor, Group.SETUP, 17, examples=())
