"""`vcpo-bench demo`: a collapse and two methods that avoid it, in under two minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.next_step import say_what_next
from vcpo_bench.commands.support.options import Quiet
from vcpo_bench.commands.support.run_steps import start_rewards
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Verb


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results folder.")] = Path("results/demo"),
    quiet: Quiet = False,
) -> None:
    """Watch a run collapse in under two minutes, drawn in the terminal.

    Trains tis, vcpo and vespo on the task chain at lag 16 and learning rate 1e-3 for 200 updates, then draws their
    reward curves and prints the scoreboard.
    """
    from vcpo_bench.analysis.results import load
    from vcpo_bench.bench.cells.grid import plan_grid
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.records.settings import CellSettings
    from vcpo_bench.reports.terminal.curves import curves
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.plain_console import PlainConsole

    methods = ("tis", "vcpo", "vespo")
    settings = CellSettings(steps=200)
    spec = GridSpec(methods, (16,), (0,), tasks=("chain",), lrs=(1e-3,), settings=settings, controls=False)
    view = make_view(quiet, PlainConsole())
    try:
        for text in start_rewards(spec):
            view.message(text)
        failed = run_grid.run_grid(plan_grid(spec), RunOptions(out, run_grid.worker_count(0)), view)
    finally:
        view.close()
    say(curves(load(out)))
    say_what_next(out, *show_scoreboard(out, as_json=False), quiet)
    if failed:
        raise typer.Exit(1)


VERB = Verb(
    demo,
    order=9,
    examples=("vcpo-bench demo",),
    resumes=True,
)
