"""Options that several verbs share, so that one flag means and says the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_OUT = Path("results/default")

GRID = "Grid (every LIST is comma-separated and adds an axis)"
SWITCHES = "Switches"
EXECUTION = "Execution"
LANGUAGE_MODEL = "Language models (needs the extra hf)"

Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR", help="Results folders; several are pooled.", show_default=str(DEFAULT_OUT), show_envvar=False
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Hide progress.", rich_help_panel=EXECUTION)]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N", help="Number of worker processes; 0 means one per CPU core or GPU.", rich_help_panel=EXECUTION
    ),
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        metavar="",
        help="Wait while another process writes to the results folder, instead of stopping with an error.",
        rich_help_panel=EXECUTION,
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="Python file with methods, tasks, regimes, samplers or signals of your own. Repeat for several files.",
        rich_help_panel=EXECUTION,
    ),
]
RecordedStart = Annotated[
    Path | None,
    typer.Option("--start", metavar="FILE", help="Start policy of the runs, if they were made with --start."),
]
RecordedModel = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Language model the runs started from, if they were made with --model.",
        rich_help_panel=LANGUAGE_MODEL,
    ),
]
ReplayDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="GPU to use, such as cuda:1, for runs made on a GPU.",
        show_default="the kind of device the run was made on",
        rich_help_panel=EXECUTION,
    ),
]
