"""`vcpo-bench lab eval`: kept checkpoints scored with lm-eval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import EXECUTION, Plugins, RecordedModel, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def evaluate(
    cells: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="Folders of ended cells, results/NAME/cells/KEY, or results folders, for all their cells.",
        ),
    ],
    tasks: Annotated[
        str,
        typer.Option(metavar="LIST", help="Tasks of lm-eval; own means the task the cell was trained on."),
    ] = "own",
    checkpoint: Annotated[
        str, typer.Option(metavar="WHICH", help="Kept checkpoints to score: last, all, or a number of updates.")
    ] = "last",
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest number of documents per task.", show_default="all documents"),
    ] = None,
    tasks_from: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with YAML files of your own lm-eval tasks.")
    ] = None,
    model: RecordedModel = "",
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Device for language models: cpu, cuda or cuda:N.", rich_help_panel=EXECUTION
        ),
    ] = "cpu",
    plugin: Plugins = None,
) -> None:
    """Score kept checkpoints with lm-eval.

    Needs the extra eval, and language models trained with --keep-checkpoints. Reports and exports show the scores.
    """
    from vcpo_bench.bench.cells.flag_values import expressions
    from vcpo_bench.bench.outside.lm_eval.evaluate import Scoring, evaluate_cells

    load_plugins(plugin)
    scoring = Scoring(expressions(tasks), limit, tasks_from, model, device)
    for evaluated, scores in evaluate_cells(cells, checkpoint, scoring):
        say(f"{evaluated.key} after {evaluated.step} updates")
        for score in scores:
            error = "" if score["stderr"] is None else f" +- {score['stderr']:.4f}"
            say(f"  {score['task']:24} {score['metric']:12} {score['value']:.4f}{error}")


VERB = Verb(
    evaluate,
    examples=(
        "vcpo-bench lab eval results/default --model DIR",
        "vcpo-bench lab eval CELL --model DIR --checkpoint all --tasks own,gsm8k",
    ),
)
