"""`vcpo-bench run`: a grid of cells, trained and scored."""

from __future__ import annotations

import os
from dataclasses import replace

import typer

from vcpo_bench.bench.policies.pretrained.wheels import OFFLINE
from vcpo_bench.commands.support.configuration import write_config
from vcpo_bench.commands.support.model_defaults import with_fitting_passes, with_model_defaults
from vcpo_bench.commands.support.run_options import Config, ExecutionOptions, GridOptions, SaveConfig, StopOptions
from vcpo_bench.commands.support.run_steps import (
    estimate,
    estimate_gpu,
    export,
    plan,
    read_means,
    show_commands,
    train,
    trains_here,
)
from vcpo_bench.commands.support.say import say_aside
from vcpo_bench.commands.support.verb import Verb
from vcpo_bench.errors import UsageError
from vcpo_bench.records.settings import CellSettings


def remember_server(ctx: typer.Context) -> None:
    """Put the address that was typed where workers read it; one from the environment is there already."""
    source = ctx.get_parameter_source("url")
    if ctx.params["url"] and source is not None and source.name != "ENVIRONMENT":
        os.environ["VCPO_BENCH_VLLM_URL"] = ctx.params["url"]


def run(
    ctx: typer.Context,
    grid: GridOptions,
    settings: CellSettings,
    stopping: StopOptions,
    how: ExecutionOptions,
    config: Config = "",
    save_config: SaveConfig = None,
) -> None:
    """Train every missing cell of a grid, then print the scoreboard.

    A cell is one method, lag, regime, task, learning rate and seed. Stop a run at any time: the same command resumes
    it. On a CPU the results are bit-identical, except in the regime async with its real clock.
    """
    from vcpo_bench.bench.trainers.catalog import OutsideTrainer

    if how.cells and not how.dry_run:
        raise UsageError("--cells lists what --dry-run counts; add --dry-run, or drop --cells to train")
    if how.offline:
        os.environ[OFFLINE] = "1"
    if how.export:
        for flag, given in (("--dry-run", how.dry_run), ("--detach", how.detach), ("--report-to", how.report_to)):
            if given:
                raise UsageError(f"--export writes a folder and runs nothing; drop {flag}")
        how = replace(how, out=how.export)
    means = read_means(how)
    remember_server(ctx)
    grid, settings = with_model_defaults(ctx, grid, settings)
    alarm = stopping.alarm(settings.record)
    spec = grid.spec(replace(settings, stop=alarm.detector.text) if alarm else settings)
    outside = isinstance(spec.parts.trainer, OutsideTrainer)
    on_gpu = how.dry_run and spec.model and spec.device != "cpu" and not outside
    if not on_gpu:
        spec = with_fitting_passes(ctx, spec, how, trains_here(spec, how, means))
    if save_config:
        write_config(ctx, save_config)
    if on_gpu:
        estimate_gpu(spec)
        return
    planned = plan(spec, how, means)
    if alarm:
        say_aside(f"cells stop at the first alarm of {alarm.detector.text}; {alarm.words}")
    if how.export:
        export(planned)
    elif how.dry_run and outside:
        show_commands(planned)
    elif how.dry_run:
        estimate(planned, how.cells)
    elif train(planned, how):
        raise typer.Exit(1)


VERB = Verb(
    run,
    order=1,
    examples=(
        "vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128",
        'vcpo-bench run --methods "clip,clip(high=0.28)" --lr 1e-4,3e-4 --dry-run',
        "vcpo-bench run --config quick --out results/quick",
    ),
    resumes=True,
)
