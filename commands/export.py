"""`vcpo-bench export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def export(
    folder: Annotated[Path, typer.Argument(help="Results folder.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    form: Annotated[str, typer.Option("--as", help="csv, parquet or latex.")] = "csv",
) -> None:
    """Export the results as tables."""
    from vcpo_bench.reports.writers import tables as exporting

    for path in exporting.export(folder, out, form):
        typer.echo(path)


VERB = Verb(export, Group.READ, 12, examples=())
