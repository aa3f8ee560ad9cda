"""Commands about what exists: results to compare, export, trace and judge, and the environment. Wiring only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_OUT = Path("results/default")


def diff(
    first: Annotated[Path, typer.Argument(help="Results folder A.")],
    second: Annotated[Path, typer.Argument(help="Results folder B.")],
    html: Annotated[Path | None, typer.Option(help="Write it as a page instead.")] = None,
) -> None:
    """What changed between two results folders, and which conclusions flip."""
    from vcpo_bench.reports import diff as comparing

    typer.echo(comparing.write_diff(first, second, html) if html else comparing.diff(first, second).text)


def export(
    folder: Annotated[Path, typer.Argument(help="Results folder.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    form: Annotated[str, typer.Option("--as", help="csv, parquet or latex.")] = "csv",
) -> None:
    """Export the results as tables."""
    from vcpo_bench.reports import export as exporting

    for path in exporting.export(folder, out, form):
        typer.echo(path)


def trace(
    number: Annotated[str, typer.Argument(help="Id of a number in a report.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="The results the report was made from.")] = None,
) -> None:
    """Show the rows behind a number of a report."""
    from vcpo_bench.reports.trace import trace as find

    typer.echo(find(folders or [DEFAULT_OUT], number).text)


def analyze(
    kind: Annotated[str, typer.Argument(help="weights, gradients, collapse or compare.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="Results folders; several are pooled.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables as CSV.")] = None,
) -> None:
    """Judge recorded results: findings in sentences, tables as CSV."""
    from vcpo_bench.analysis.commands import run as run_analysis

    findings = run_analysis(kind, folders or [DEFAULT_OUT])
    for sentence in findings.text:
        typer.echo(sentence)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in findings.tables.items():
            table.to_csv(out / f"{name}.csv", index=False)
            typer.echo(f"table: {out / name}.csv")


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", help="Run the checks that need a GPU.")] = False,
) -> None:
    """What this environment can do: versions, extras, devices."""
    from vcpo_bench.bench import doctor as examining
    from vcpo_bench.bench.gpu_checks import gpu_checks

    failed = False
    for finding in [*examining.examine(), *(gpu_checks() if gpu else ())]:
        typer.echo(f"{finding.status:8} {finding.name}: {finding.text}")
        failed |= finding.status == "failed"
    if failed:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
    for command in (diff, export, trace, analyze, doctor):
        app.command()(command)
