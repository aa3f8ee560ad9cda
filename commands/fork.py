"""`vcpo-bench fork`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


def fork(
    cells: Annotated[list[Path], typer.Argument(help="Folders of ended cells: results/NAME/cells/KEY.")],
    at: Annotated[int, typer.Option(help="Updates done when the methods part.")],
    methods: Annotated[str, typer.Option(help="Methods to continue with; the run's own is added as control.")],
    out: Annotated[Path, typer.Option(help="Results folder of the forks; a second call completes it.")],
    steps: Annotated[int | None, typer.Option(min=1, help="Updates of the whole run; default: the run's.")] = None,
    start: Annotated[Path | None, typer.Option(help="Start policy, where the runs had one of their own.")] = None,
    model: Annotated[str, typer.Option(help="The language model the runs began with, if they did.")] = "",
    device: Annotated[str, typer.Option(help="Which GPU (cuda:N), for runs on one; default: their kind.")] = "",
    plugin: Annotated[list[Path] | None, typer.Option(help="Python file with a method of your own.")] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes; 0: one per core or GPU.")] = 0,
    wait: Annotated[bool, typer.Option(help="Queue behind a run on the same folder.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Continue recorded runs with other methods from the same weights, optimizer state and queue."""
    from rich.console import Console

    from vcpo_bench.analysis.comparison.scoreboard import scoreboard
    from vcpo_bench.analysis.results import load
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.replay import fork as forking
    from vcpo_bench.bench.replay import replay as recorded
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.methods import load_plugin
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.scoreboard import scoreboard_table

    plugins = tuple(path.resolve() for path in plugin or [])
    for path in plugins:
        load_plugin(path)
    parents = [recorded.read_cell(folder, start, model, device) for folder in cells]
    spec = forking.ForkSpec(parents, at, options.split_top_level(methods), out, steps)
    planned, workers = forking.plan_forks(spec), run_grid.worker_count(jobs, spec.device)
    forking.write_origins(spec, planned, wait, typer.echo)
    view = make_view(quiet, Console())
    try:
        failed = run_grid.run_grid(planned, run_grid.RunOptions(out, workers, wait, plugins=plugins), view)
    finally:
        view.close()
    Console().print(scoreboard_table(scoreboard(load(out))))
    if failed:
        raise typer.Exit(1)


VERB = Verb(fork, Group.TRAIN, 5, examples=())
