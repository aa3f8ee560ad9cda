"""Commands about results that exist: compare, export, trace and judge them. Wiring only, as in ``cli``."""

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


def wandb(
    folder: Annotated[Path, typer.Argument(help="Results folder.")] = DEFAULT_OUT,
    mode: Annotated[str, typer.Option(help="offline or online.")] = "online",
    project: Annotated[str, typer.Option(help="Project of wandb.")] = "vcpo-bench",
) -> None:
    """Mirror a results folder to wandb: the ended cells that are not there yet, and the report."""
    from vcpo_bench.bench.mirror.process import mirror_folder
    from vcpo_bench.reports.page import write_page

    count = mirror_folder(folder, mode, project, write_page([folder], folder / "report.html"))
    typer.echo(f"{count} cells mirrored to the wandb project {project} ({mode})")


def evaluate(
    cells: Annotated[list[Path], typer.Argument(help="Folders of ended cells, or results folders.")],
    tasks: Annotated[str, typer.Option(help="Tasks of lm-eval; own: those about the cell's task.")] = "own",
    checkpoint: Annotated[str, typer.Option(help="last, all, or a number of updates.")] = "last",
    limit: Annotated[int | None, typer.Option(help="Documents per task.")] = None,
    tasks_from: Annotated[Path | None, typer.Option(help="Folder with lm-eval tasks of your own.")] = None,
    model: Annotated[str, typer.Option(help="The language model the cells began with, if they did.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N; for language models.")] = "cpu",
) -> None:
    """Score kept checkpoints with lm-eval; reports and exports show the scores."""
    from vcpo_bench.bench.lmeval.evaluate import Scoring, evaluate_cells
    from vcpo_bench.bench.options import split_top_level

    scoring = Scoring(split_top_level(tasks), limit, tasks_from, model, device)
    for one, scores in evaluate_cells(cells, checkpoint, scoring):
        typer.echo(f"{one.key} after {one.step} updates")
        for score in scores:
            error = "" if score["stderr"] is None else f" +- {score['stderr']:.4f}"
            typer.echo(f"  {score['task']:24} {score['metric']:12} {score['value']:.4f}{error}")


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
    for command in (diff, export, trace, analyze, wandb):
        app.command()(command)
    app.command(name="eval")(evaluate)
