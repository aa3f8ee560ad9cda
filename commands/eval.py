"""`vcpo-bench eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


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
    from vcpo_bench.bench.cells.flag_values import split_top_level
    from vcpo_bench.bench.outside.lm_eval.evaluate import Scoring, evaluate_cells

    scoring = Scoring(split_top_level(tasks), limit, tasks_from, model, device)
    for one, scores in evaluate_cells(cells, checkpoint, scoring):
        typer.echo(f"{one.key} after {one.step} updates")
        for score in scores:
            error = "" if score["stderr"] is None else f" +- {score['stderr']:.4f}"
            typer.echo(f"  {score['task']:24} {score['metric']:12} {score['value']:.4f}{error}")


VERB = Verb(evaluate, Group.READ, 13, examples=())
