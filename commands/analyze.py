"""`vcpo-bench analyze`: findings from recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Folders, Plugins
from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.plugins import load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Group, Verb


def analyze(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Analysis, with parameters if it has any, such as compare(replications=500); vcpo-bench ls analyses "
            "lists them.",
        ),
    ],
    folders: Folders = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the tables behind the findings, as CSV.")
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", metavar="", help="Print each finding's id, for vcpo-bench trace.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Analyze recorded runs: print the findings, write their tables.

    Every finding is one sentence, with a 95% confidence interval where one can be computed.
    """
    from vcpo_bench.analysis.commands import ANALYSES
    from vcpo_bench.analysis.commands import run as run_analysis
    from vcpo_bench.analysis.csv_text import without_formulas
    from vcpo_bench.errors import UsageError
    from vcpo_bench.files.atomic import replacing, write_text
    from vcpo_bench.reports.numbers import statement_id

    check_folder("--out", out)
    load_plugins(plugin)
    findings = run_analysis(kind, folders or [DEFAULT_OUT])
    if ids and ANALYSES.parse(kind).text() not in ANALYSES.names():
        raise UsageError(f"--ids: trace computes analyses with their defaults; leave out the parameters of {kind}")
    for statement in findings.statements:
        say(f"{statement_id(kind, statement.text)}  {statement.text}" if ids else statement.text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in findings.tables.items():
            with replacing(out / f"{name}.csv") as file:
                without_formulas(table).to_csv(file, index=False)
            say(f"table: {out / name}.csv")
        for name, content in findings.documents.items():
            write_text(out / name, content)
            say(f"document: {out / name}")


VERB = Verb(
    analyze,
    Group.READ,
    4,
    examples=(
        "vcpo-bench analyze collapse results/default",
        "vcpo-bench analyze compare results/protocol --out tables",
    ),
)
