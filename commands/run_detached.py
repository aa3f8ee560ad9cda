"""`vcpo-bench run-detached`: what `run --launcher local --detach` starts in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Verb


def run_detached(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results folder, where vcpo-bench run entered the cells.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name under which they were entered.")],
) -> None:
    """Run the cells that were left to this background process.

    The exit code is 1 if a cell failed.
    """
    from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
    from vcpo_bench.bench.running.schedulers.detached_process import run_detached as run_cells
    from vcpo_bench.commands.support.kinds.find import load_catalogs

    load_catalogs()  # what plug-in files may define is known from them
    if run_cells(out.resolve(), name, StopOnAlarm):
        raise typer.Exit(1)


VERB = Verb(
    run_detached,
    examples=("vcpo-bench run-detached --out results/default --name NAME",),
    hidden=True,
)
