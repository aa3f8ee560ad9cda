"""`vcpo-bench run`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.configuration import read_config
from vcpo_bench.commands.support.configuration import save_config as write_config
from vcpo_bench.commands.support.paths import DEFAULT_OUT
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.verb import Group, Verb

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid import PlannedCell

Grid = "What to compare (lists make axes)"
Language = "Language models (extra: hf)"
How = "How to run it"


def run(
    ctx: typer.Context,
    methods: Annotated[str, typer.Option(help="Method expressions.", rich_help_panel=Grid)] = "vcpo,clip,vespo",
    staleness: Annotated[str, typer.Option(help="Lags in optimizer updates.", rich_help_panel=Grid)] = "1,16,128",
    seeds: Annotated[str, typer.Option(help="A count, or a list.", rich_help_panel=Grid)] = "3",
    task: Annotated[str, typer.Option(help="Tasks (vcpo-bench ls tasks).", rich_help_panel=Grid)] = "chain",
    regime: Annotated[str, typer.Option(help="How the lag comes about (ls regimes).", rich_help_panel=Grid)] = "fifo",
    lr: Annotated[str, typer.Option(help="Learning rates.", rich_help_panel=Grid)] = "3e-4",
    weight_decay: Annotated[float, typer.Option(help="Of AdamW.", rich_help_panel=Grid)] = 0.0,
    steps: Annotated[int, typer.Option(help="Optimizer updates.", rich_help_panel=Grid)] = 300,
    prompts: Annotated[int, typer.Option(help="Prompts per update.", rich_help_panel=Grid)] = 16,
    responses: Annotated[int, typer.Option(help="Responses per prompt.", rich_help_panel=Grid)] = 8,
    record: Annotated[str, typer.Option(help="basic, diagnostics or full.", rich_help_panel=Grid)] = "basic",
    start: Annotated[
        Path | None, typer.Option(help="Start policy (vcpo-bench warmup); default: the task's.", rich_help_panel=Grid)
    ] = None,
    plugin: Annotated[
        list[Path] | None, typer.Option(help="Python file with a method of your own.", rich_help_panel=Grid)
    ] = None,
    model: Annotated[
        str, typer.Option(help="Folder or hub name; trained on tasks in words.", rich_help_panel=Language)
    ] = "",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16.", rich_help_panel=Language)] = "float32",
    lora: Annotated[int, typer.Option(help="Rank of adapters; 0: train all weights.", rich_help_panel=Language)] = 0,
    sampler: Annotated[
        str, typer.Option(help="torch, torch(slots=64), generate, vllm or vllm-server.", rich_help_panel=Language)
    ] = "torch",
    url: Annotated[
        str, typer.Option(help="Of --sampler vllm-server.", envvar="VCPO_BENCH_VLLM_URL", rich_help_panel=Language)
    ] = "",
    max_response: Annotated[int, typer.Option(help="Tokens; 0: the task's.", rich_help_panel=Language)] = 0,
    micro_tokens: Annotated[int, typer.Option(help="Tokens per pass; 0: no limit.", rich_help_panel=Language)] = 0,
    checkpointing: Annotated[bool, typer.Option(help="Recompute activations.", rich_help_panel=Language)] = False,
    chat_template: Annotated[bool, typer.Option(help="Use the tokenizer's, if any.", rich_help_panel=Language)] = True,
    controls: Annotated[
        bool, typer.Option(help="Add reinforce at each lag and a synchronous run per seed.", rich_help_panel=Grid)
    ] = True,
    stop_on_alarm: Annotated[
        bool, typer.Option("--stop-on-alarm", help="End a cell when its collapse is predicted.", rich_help_panel=Grid)
    ] = False,
    out: Annotated[Path, typer.Option(help="Results folder; a second run completes it.", rich_help_panel=How)] = (
        DEFAULT_OUT
    ),
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.", rich_help_panel=How)] = "cpu",
    jobs: Annotated[int, typer.Option(help="Workers; 0: one per core or GPU.", rich_help_panel=How)] = 0,
    dry_run: Annotated[bool, typer.Option(help="Show the cells and a time estimate.", rich_help_panel=How)] = False,
    wait: Annotated[bool, typer.Option(help="Queue behind a run on the same folder.", rich_help_panel=How)] = False,
    keep_checkpoints: Annotated[
        str, typer.Option(help="Keep checkpoints, such as every=50.", rich_help_panel=How)
    ] = "",
    wandb: Annotated[
        str, typer.Option(help="Mirror to wandb: disabled, offline or online.", rich_help_panel=How)
    ] = "disabled",
    wandb_project: Annotated[str, typer.Option(help="Project of wandb.", rich_help_panel=How)] = "vcpo-bench",
    config: Annotated[
        str, typer.Option(help="Preset or YAML file (keys = flags).", callback=read_config, is_eager=True)
    ] = "",
    save_config: Annotated[Path | None, typer.Option(help="Write the settings as YAML.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=How)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Scoreboard as JSON.", rich_help_panel=How)] = False,
) -> None:
    """Train every (method, lag, rate, task, seed) cell that is missing, then show the scoreboard."""
    from rich.console import Console

    from vcpo_bench.analysis.monitoring import alarm_panel as alarms
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.cells import grid
    from vcpo_bench.bench.cells.model_source import LanguageModel
    from vcpo_bench.bench.outside.wandb_mirror.process import WandbMirror
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.methods import load_plugin
    from vcpo_bench.reports.terminal.live import make_view

    plugins = tuple(path.resolve() for path in plugin or [])
    for path in plugins:
        load_plugin(path)
    if url:
        os.environ["VCPO_BENCH_VLLM_URL"] = url  # workers read it there: it is no part of a cell
    watched = alarms.stop_default(options.level(record)) if stop_on_alarm else None
    spec = grid.GridSpec(
        methods=options.split_top_level(methods),
        staleness=options.lags(staleness),
        seeds=options.seeds(seeds),
        tasks=options.split_top_level(task),
        lrs=options.rates(lr),
        regimes=options.split_top_level(regime),
        steps=steps,
        prompts=prompts,
        responses=responses,
        record=options.level(record),
        controls=controls,
        start=start,
        stop=watched.detector.text if watched else "",
        model=LanguageModel(model, dtype, lora, chat_template, sampler, max_response, micro_tokens, checkpointing)
        if model
        else None,
        device=device,
        weight_decay=weight_decay,
    )
    if save_config:
        write_config(ctx, save_config)
    keep_every = options.every(keep_checkpoints) if keep_checkpoints else 0
    if dry_run and spec.model and device != "cpu":
        from vcpo_bench.bench.machine.gpu_plan import gpu_plan

        typer.echo("\n".join(gpu_plan(spec, spec.model)))
        return
    cells = grid.plan_grid(spec)
    for warning in grid.lag_warnings(spec):
        typer.echo(f"warning: {warning}", err=True)
    if skipped := grid.skipped_methods(spec):
        typer.echo(f"left out, because the regime cannot serve them: {', '.join(skipped)}", err=True)
    if watched:
        typer.echo(f"cells stop on {watched.detector.text}; {watched.words}", err=True)
    workers = run_grid.worker_count(jobs, device, sampler)
    if dry_run:
        _show_plan(cells, workers, out)
        return
    with WandbMirror(wandb, wandb_project, out, cells, _warn) as mirror:
        view = make_view(quiet or as_json, Console(stderr=as_json))
        try:
            options_of_run = run_grid.RunOptions(out, workers, wait, keep_every, plugins, alarms.StopOnAlarm)
            failed = run_grid.run_grid(cells, options_of_run, view)
        finally:
            view.close()
        show_scoreboard(out, as_json)
        mirror.report(lambda: _write_page(out))
    if failed:
        raise typer.Exit(1)


def _write_page(out: Path) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    return write_page([out], out / "report.html")


def _warn(text: str) -> None:
    typer.echo(f"warning: {text}", err=True)


def _show_plan(cells: list[PlannedCell], workers: int, out: Path) -> None:
    from vcpo_bench.bench.cells.results_folder import ended_keys
    from vcpo_bench.bench.running.time_estimate import estimate

    done = ended_keys(out)
    missing = [cell for cell in cells if cell.key not in done]
    for cell in cells:
        note = "ended" if cell.key in done else "control" if cell.control else ""
        typer.echo(f"{cell.config.label:60} {note}".rstrip())
    seconds = estimate(missing, workers) if missing else 0.0
    typer.echo(
        f"{len(cells)} cells, {len(missing)} to run on {workers} workers: about {seconds / 60:.1f} minutes, "
        "from updates just timed on this machine"
    )


VERB = Verb(
    run,
    Group.TRAIN,
    2,
    examples=(
        "vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128",
        'vcpo-bench run --methods "clip,clip(high=0.28)" --staleness 16 --lr 1e-4,3e-4 --seeds 5',
    ),
)
