"""`vcpo-bench wandb`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.verb import Group, Verb


def wandb(
    folder: Annotated[Path, typer.Argument(help="Results folder.")] = DEFAULT_OUT,
    mode: Annotated[str, typer.Option(help="offline or online.")] = "online",
    project: Annotated[str, typer.Option(help="Project of wandb.")] = "vcpo-bench",
) -> None:
    """Mirror a results folder to wandb: the ended cells that are not there yet, and the report."""
    from vcpo_bench.bench.outside.wandb_mirror.process import mirror_folder
    from vcpo_bench.reports.writers.html import write_page

    count = mirror_folder(folder, mode, project, write_page([folder], folder / "report.html"))
    typer.echo(f"{count} cells mirrored to the wandb project {project} ({mode})")


VERB = Verb(wandb, Group.READ, 14, examples=())
