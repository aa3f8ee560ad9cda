"""`vcpo-bench lab fork`: recorded runs continued with other methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import (
    Jobs,
    Plugins,
    Quiet,
    RecordedModel,
    RecordedStart,
    ReplayDevice,
    Wait,
    load_plugins,
)
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Verb


def fork(
    cells: Annotated[
        list[Path],
        typer.Argument(metavar="CELL", help="Folders of ended cells: results/NAME/cells/KEY."),
    ],
    at: Annotated[int, typer.Option(metavar="N", help="Number of updates after which the methods diverge.")],
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Methods to continue with. The run's own method is always added, as the control."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Results folder for the forks. Repeat the same command to resume."),
    ],
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Total number of updates, including those before the fork.",
            show_default="as many as the run",
        ),
    ] = None,
    start: RecordedStart = None,
    model: RecordedModel = "",
    device: ReplayDevice = "",
    plugin: Plugins = None,
    jobs: Jobs = 0,
    wait: Wait = False,
    quiet: Quiet = False,
) -> None:
    """Continue recorded runs with other methods from the same state.

    Each run is replayed bit for bit up to update --at. From there every method continues with the same weights,
    optimizer state, queued data and random streams.
    """
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.replay import fork as forking
    from vcpo_bench.bench.replay.recorded_cell import read_cell
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.plain_console import PlainConsole

    plugins = load_plugins(plugin)
    parents = [read_cell(folder, start, model, device) for folder in cells]
    spec = forking.ForkSpec(parents, at, options.expressions(methods), out, steps)
    planned, workers = forking.plan_forks(spec), run_grid.worker_count(jobs, spec.device)
    forking.write_origins(spec, planned, wait, say)
    view = make_view(quiet, PlainConsole())
    try:
        failed = run_grid.run_grid(planned, RunOptions(out, workers, wait, plugins=plugins), view)
    finally:
        view.close()
    show_scoreboard(out, as_json=False)
    if failed:
        raise typer.Exit(1)


VERB = Verb(
    fork,
    examples=("vcpo-bench lab fork CELL --at 100 --methods vcpo,vespo --out results/forks",),
    resumes=True,
)
