"""`vcpo-bench results mirror`: a results folder at trackers such as TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT, Plugins, load_plugins
from vcpo_bench.commands.support.verb import Verb


def mirror(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder.")] = DEFAULT_OUT,
    to: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Trackers: tensorboard, mlflow, trackio, wandb, with parameters such as wandb(mode=online).",
        ),
    ] = "tensorboard",
    plugin: Plugins = None,
) -> None:
    """Mirror a results folder to trackers.

    Sends the ended cells that are not there yet. vcpo-bench run --report-to LIST does it during the run.
    """
    from vcpo_bench.commands.support.tracking import mirror_ended, read_trackers
    from vcpo_bench.errors import UsageError

    load_plugins(plugin)
    trackers = read_trackers(to)
    if not trackers:
        raise UsageError("--to: name a tracker, such as tensorboard")
    mirror_ended(folder, trackers)


VERB = Verb(mirror, examples=("vcpo-bench results mirror results/default --to tensorboard,trackio",))
