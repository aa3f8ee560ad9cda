"""`vcpo-bench results export`: the recorded tables, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders
from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def export(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write the tables to.")],
    folders: Folders = None,
    form: Annotated[str, typer.Option("--as", metavar="FORMAT", help="File format: csv, parquet or latex.")] = "csv",
) -> None:
    """Export the tables of a results folder as CSV, Parquet or LaTeX.

    CSV and Parquet hold the recorded tables, unrounded; LaTeX holds the tables of the report and a macro per number.
    """
    from vcpo_bench.reports.writers import tables as exporting

    check_folder("--out", out)
    for path in exporting.export(folders or [DEFAULT_OUT], out, form):
        say(path)


VERB = Verb(
    export,
    examples=(
        "vcpo-bench results export results/default --out tables",
        "vcpo-bench results export results/default --as latex --out paper/tables",
    ),
)
