"""The command line: wiring between the rooms, no logic of its own. Heavy imports happen inside the commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from vcpo_bench.commands import results as cli_results
from vcpo_bench.commands import warmup as cli_warmup
from vcpo_bench.commands.results import DEFAULT_OUT
from vcpo_bench.errors import UsageError, VcpoBenchError

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid import PlannedCell


class _OneLineErrors(TyperGroup):
    """Errors a user can cause become one line and exit code 2; Ctrl-C one line and 130."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted: what has finished is kept; the same command goes on from here", err=True)
            raise typer.Exit(130) from None
        except (VcpoBenchError, ValueError) as error:
            if not isinstance(error, VcpoBenchError) and not _is_method_error(error):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        except OSError as error:
            if error.filename is None:
                raise
            typer.echo(f"error: {error.filename}: {error.strerror}; name another file or folder", err=True)
            raise typer.Exit(2) from None


def _is_method_error(error: ValueError) -> bool:
    from vcpo_bench.methods.core.errors import MethodError  # loads torch: only once something went wrong

    return isinstance(error, MethodError)


app = typer.Typer(
    name="vcpo-bench",
    cls=_OneLineErrors,
    help="Which stabilizer survives at your policy lag, why a run collapsed, and whether you could have known.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _flags(command: Any) -> dict[str, Any]:
    """The long flags of a command, without dashes, and their parameters: what a configuration file may set."""
    skipped = {"config", "save_config", "help", "dry_run", "plugin"}
    parameters = [p for p in command.params if p.name not in skipped]
    return {max(p.opts, key=len).lstrip("-"): p for p in parameters}


def _read_config(ctx: typer.Context, value: str) -> str:
    """Make the file's values the defaults of this call, so that a flag typed wins."""
    if value:
        from vcpo_bench.bench.cells.preset_file import read_configuration

        flags = _flags(ctx.command)
        kinds = {flag: type(p.default) if isinstance(p.default, (bool, int)) else str for flag, p in flags.items()}
        values = read_configuration(value, PRESETS, kinds)
        ctx.default_map = {flags[flag].name: setting for flag, setting in values.items()}
    return value


def _save_config(ctx: typer.Context, path: Path) -> None:
    from vcpo_bench.bench.cells.preset_file import write_configuration

    flags = _flags(ctx.command)
    settings = {flag: ctx.params[p.name] for flag, p in flags.items()}
    write_configuration(
        path, {k: str(v) if isinstance(v, Path) else v for k, v in settings.items() if v not in ("", None)}
    )


PRESETS = Path(__file__).parent / "configs"

Grid = "What to compare (lists make axes)"
Language = "Language models (extra: hf)"
How = "How to run it"


@app.command(
    epilog="Examples:  vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128  |  "
    'vcpo-bench run --methods "clip,clip(high=0.28)" --staleness 16 --lr 1e-4,3e-4 --seeds 5'
)
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
        str, typer.Option(help="Preset or YAML file (keys = flags).", callback=_read_config, is_eager=True)
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
        _save_config(ctx, save_config)
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
        _show(out, as_json)
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


@app.command(name="plan")
def plan_command(
    regime: Annotated[str, typer.Option(help="Regime expression (ls regimes).")] = "fifo",
    staleness: Annotated[int, typer.Option(min=0, help="Largest lag in optimizer updates.")] = 16,
    steps: Annotated[int, typer.Option(min=1, help="Updates to draw.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random lags and shuffles.")] = 0,
    simulate: Annotated[bool, typer.Option("--simulate", help="Speed of async under its service times.")] = False,
) -> None:
    """Draw which update consumes which version of the weights, and print the largest and mean lag and the period."""
    from vcpo_bench.bench.regimes.simulation import describe, describe_speed

    typer.echo((describe_speed if simulate else describe)(regime, staleness, steps, seed))


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="Results folder; or the word method.")] = str(DEFAULT_OUT),
    name: Annotated[str, typer.Argument(help="After method: its name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the scoreboard of a results folder (and write its scoreboard.csv), or a method: show method vespo."""
    if what == "method":
        from vcpo_bench.commands.listing import method_page

        typer.echo("\n".join(method_page(name)))
    else:
        _show(Path(what), as_json)


@app.command()
def new(
    what: Annotated[str, typer.Argument(help="method.")],
    name: Annotated[str, typer.Argument(help="Its name in expressions, such as my-method.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
) -> None:
    """Write a working method of your own and its test: new method NAME."""
    from vcpo_bench.methods.assembly.template import new_method

    if what != "method":
        raise UsageError(f"new {what}: only 'new method NAME' exists")
    for path in new_method(name, folder):
        typer.echo(path)


def _show(folder: Path, as_json: bool) -> None:
    from rich.console import Console

    from vcpo_bench.analysis.comparison.scoreboard import scoreboard, write_csv
    from vcpo_bench.analysis.results import load
    from vcpo_bench.reports.terminal.scoreboard import scoreboard_table

    results = load(folder)
    board = scoreboard(results)
    for problem in results.problems + results.notes:  # tables are read, and found damaged, when asked for
        typer.echo(f"warning: {problem}", err=True)
    write_csv(board, folder / "scoreboard.csv")
    if as_json:
        typer.echo(board.to_json(orient="records", indent=1))
    else:
        Console().print(scoreboard_table(board))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Results folder.")] = Path("results/demo"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """See a collapse in under two minutes: tis, vcpo and vespo at lag 16 and rate 1e-3, as curves in the terminal."""
    from rich.console import Console

    from vcpo_bench.analysis.results import load
    from vcpo_bench.bench.cells import grid
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.scoreboard import curves

    demonstrated = ("tis", "vcpo", "vespo")
    spec = grid.GridSpec(demonstrated, staleness=(16,), seeds=(0,), lrs=(1e-3,), steps=200, controls=False)
    view = make_view(quiet, Console())
    try:
        failed = run_grid.run_grid(grid.plan_grid(spec), run_grid.RunOptions(out, run_grid.worker_count(0)), view)
    finally:
        view.close()
    typer.echo(curves(load(out)))
    _show(out, as_json=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def report(
    folders: Annotated[list[Path] | None, typer.Argument(help="Results folders; several are pooled.")] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write; default: report.html in the folder.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also typeset a PDF to this file.")] = None,
    figures: Annotated[str, typer.Option(help="Also write paper figures: icml, neurips or acl.")] = "",
    partial: Annotated[bool, typer.Option(help="Also show cells that are still running.")] = False,
    watch: Annotated[bool, typer.Option(help="Write the page again until no cell is running.")] = False,
) -> None:
    """Write the results as one offline HTML page, as a PDF, and as figures for a paper."""
    from vcpo_bench.reports.writers import html as page
    from vcpo_bench.reports.writers import paper
    from vcpo_bench.reports.writers import pdf as typeset
    from vcpo_bench.reports.writers import watch as watching

    sources = folders or [DEFAULT_OUT]
    target = html or sources[0] / "report.html"
    if watch:
        watching.watch(sources, target, on_write=typer.echo)
    else:
        typer.echo(page.write_page(sources, target, partial))
    if pdf:
        typer.echo(typeset.write_pdf(sources, pdf, partial))
    if figures:
        for path in paper.write_figures(sources, target.parent / figures, figures):
            typer.echo(path)


cli_results.add_to(app)
app.command()(cli_warmup.warmup)


@app.command()
def ls(
    what: Annotated[str, typer.Argument(help="methods, parts, tasks, regimes, presets or runs.")],
    results: Annotated[Path, typer.Option(help="Where runs are.")] = Path("results"),
) -> None:
    """List methods, parts, tasks, regimes, presets or runs."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from vcpo_bench.commands.listing import listing

    found = listing(what, results, PRESETS)
    table = Table(*found.columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in found.rows:
        table.add_row(*row)
    Console(markup=False).print(table)


def main() -> None:
    """Run the command line."""
    app()
