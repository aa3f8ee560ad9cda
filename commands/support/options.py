"""Options that several verbs share, so that one flag means and says the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

DEFAULT_OUT = Path("results/default")

GRID = "Grid (every LIST is comma-separated and adds an axis)"
SWITCHES = "Switches"
EXECUTION = "Execution"
LANGUAGE_MODEL = "Language models (needs the extra hf)"


def option(panel: str, metavar: str, words: str, *names: str, **more: Any) -> Any:
    """An option in a panel of the help.

    Args:
        panel: Title of the panel.
        metavar: What stands for its value; empty: it is a switch.
        words: What it does, a sentence.
        names: Its names; without any, that of the parameter.
        more: Further arguments of `typer.Option`.
    """
    return typer.Option(*names, metavar=metavar, help=words, rich_help_panel=panel, **more)


Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR", help="Results folders; several are pooled.", show_default=str(DEFAULT_OUT), show_envvar=False
    ),
]
Quiet = Annotated[bool, option(EXECUTION, "", "Hide progress.", "--quiet", "-q")]
Jobs = Annotated[int, option(EXECUTION, "N", "Number of worker processes; 0 means one per CPU core or GPU.")]
Wait = Annotated[
    bool,
    option(
        EXECUTION,
        "",
        "Wait while another process writes to the results folder, instead of stopping with an error.",
        "--wait",
    ),
]
Plugins = Annotated[
    list[Path] | None,
    option(
        EXECUTION,
        "FILE",
        "Python file with methods, tasks, regimes, samplers or signals of your own. Repeat for several files.",
        "--plugin",
    ),
]
RecordedStart = Annotated[
    Path | None,
    typer.Option("--start", metavar="FILE", help="Start policy of the runs, if they were made with --start."),
]
RecordedModel = Annotated[
    str,
    option(LANGUAGE_MODEL, "NAME", "Language model the runs started from, if they were made with --model.", "--model"),
]
ReplayDevice = Annotated[
    str,
    option(
        EXECUTION,
        "NAME",
        "GPU to use, such as cuda:1, for runs made on a GPU.",
        "--device",
        show_default="the kind of device the run was made on",
    ),
]


def load_plugins(files: Sequence[Path] | None) -> tuple[Path, ...]:
    """Load the files and return their absolute paths, which worker processes load again.

    Raises:
        PluginError: A file cannot be loaded or defines nothing.
    """
    if not files:
        return ()
    from vcpo_bench.commands.support.kinds.find import load_catalogs
    from vcpo_bench.naming.errors import PluginError
    from vcpo_bench.naming.plugins import load_plugin

    if missing := [path for path in files if not path.is_file()]:
        raise PluginError(f"--plugin {missing[0]}: there is no such file")

    load_catalogs()  # what a file may define is known from them
    paths = tuple(path.resolve() for path in files)
    for path in paths:
        load_plugin(path)
    return paths
