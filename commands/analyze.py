"""`vcpo-bench analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.verb import Group, Verb


def analyze(
    kind: Annotated[str, typer.Argument(help="weights, gradients, collapse, compare or prediction.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="Results folders; several are pooled.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables as CSV.")] = None,
) -> None:
    """Judge recorded results: findings in sentences, tables as CSV."""
    from vcpo_bench.analysis.commands import run as run_analysis

    findings = run_analysis(kind, folders or [DEFAULT_OUT])
    for statement in findings.statements:
        typer.echo(statement.text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in findings.tables.items():
            table.to_csv(out / f"{name}.csv", index=False)
            typer.echo(f"table: {out / name}.csv")
        for name, content in findings.documents.items():
            (out / name).write_text(content, encoding="utf-8")
            typer.echo(f"document: {out / name}")


VERB = Verb(analyze, Group.READ, 9, examples=())
