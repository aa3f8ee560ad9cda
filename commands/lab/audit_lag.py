"""`vcpo-bench lab audit-lag`: whether the versions that rollouts declare are true."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, RecordedModel, RecordedStart, ReplayDevice, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb
from vcpo_bench.errors import UsageError

FALSE = 1


def audit_lag(
    cell: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Folder of an ended cell, run with --keep-checkpoints, or of token dumps of NeMo-RL or prime-rl.",
        ),
    ],
    alpha: Annotated[
        float, typer.Option(metavar="P", help="Probability of any false alarm, shared out among all tests.")
    ] = 1e-3,
    sample: Annotated[int, typer.Option(metavar="N", help="Trajectories scored per declared version.")] = 64,
    honest: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="First versions (of dumps: steps) taken as honest; another engine's tolerance is learned from them.",
        ),
    ] = 0,
    canaries: Annotated[
        bool,
        typer.Option(
            "--canaries/--no-canaries",
            metavar="",
            help="Push each stored version to the cell's sampler and check its answers.",
        ),
    ] = True,
    start: RecordedStart = None,
    model: RecordedModel = "",
    device: ReplayDevice = "",
    plugin: Plugins = None,
) -> None:
    """Check that declared versions of rollouts are true.

    Recorded tokens are scored again under the stored weights of the version they declare, and canary prompts follow
    every push. One line per finding; the exit code is 1 if a version is false.
    """
    from vcpo_bench.bench.replay.recorded_cell import read_cell
    from vcpo_bench.bench.replay.verify import verify_cell
    from vcpo_bench.commands.support.audit_dumps import audit_dumps, holds_dumps

    if not 0 < alpha < 1:
        raise UsageError(f"--alpha {alpha:g}: a probability above 0 and below 1, such as 1e-3")
    load_plugins(plugin)
    findings = []
    if holds_dumps(cell):
        running = audit_dumps(cell, alpha, honest)
    else:
        running = verify_cell(read_cell(cell, start, model, device, exactly=False), alpha, sample, honest, canaries)
    for finding in running:
        findings.append(finding)
        say(finding.text())
    false = sum(finding.false for finding in findings)
    say(f"{len(findings)} tests: {f'{false} FALSE' if false else 'every declared version is true'} (alpha {alpha:g})")
    if false:
        raise typer.Exit(FALSE)


VERB = Verb(
    audit_lag,
    examples=("vcpo-bench lab audit-lag results/default/cells/KEY", "vcpo-bench lab audit-lag logs/nemo --honest 10"),
)
