"""`vcpo-bench doctor`: what this environment can do."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", metavar="", help="Also run the checks that need a GPU.")] = False,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the findings as JSON.")] = False,
) -> None:
    """Check versions, optional extras and devices of this environment.

    Exits with code 1 if a check fails.
    """
    from vcpo_bench.bench.machine import doctor as examining
    from vcpo_bench.bench.machine.gpu_checks import gpu_checks

    findings = [*examining.examine(), *(gpu_checks() if gpu else ())]
    if as_json:
        say(
            json.dumps(
                [{"name": finding.name, "status": finding.status, "text": finding.text} for finding in findings],
                indent=1,
            )
        )
    else:
        for finding in findings:
            say(f"{finding.status:8} {finding.name}: {finding.text}")
    if any(finding.status == "failed" for finding in findings):
        raise typer.Exit(1)


VERB = Verb(doctor, order=10, examples=("vcpo-bench doctor", "vcpo-bench doctor --gpu"))
