"""`vcpo-bench wandb`: a results folder on Weights & Biases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT
from vcpo_bench.commands.support.verb import Group, Verb


def wandb(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder.")] = DEFAULT_OUT,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Where the mirror goes: offline (local wandb files) or online (upload).")
    ] = "online",
    project: Annotated[str, typer.Option(metavar="NAME", help="Weights & Biases project.")] = "vcpo-bench",
) -> None:
    """Mirror a results folder to Weights & Biases.

    Sends the ended cells that are not there yet, and the report. Needs the extra wandb.
    """
    from vcpo_bench.commands.support.tracking import WANDB_MODES, mirror_ended, wandb_tracker

    mirror_ended(folder, wandb_tracker(mode, project, WANDB_MODES[1:]))


VERB = Verb(wandb, Group.READ, 7, examples=("vcpo-bench wandb results/default --mode offline",))
