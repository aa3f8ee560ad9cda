"""`vcpo-bench run`: a grid of cells, trained and scored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vcpo_bench.commands.support import grid_options as flags
from vcpo_bench.commands.support.configuration import write_config
from vcpo_bench.commands.support.extras import check_extras
from vcpo_bench.commands.support.launching import read_launcher, scheduled_count, stack_count
from vcpo_bench.commands.support.next_step import say_what_next
from vcpo_bench.commands.support.options import DEFAULT_OUT, Jobs, Plugins, Quiet, Wait
from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.plugins import load_plugins
from vcpo_bench.commands.support.remember_server import remember_server
from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.scoreboard import show_scoreboard
from vcpo_bench.commands.support.start_rewards import start_rewards
from vcpo_bench.commands.support.tracking import check_trackers, mirrored, read_trackers
from vcpo_bench.commands.support.verb import Group, Verb
from vcpo_bench.records.settings import CellFields

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid import PlannedCell
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.outside.trackers.catalog import Tracker
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.bench.running.schedulers.catalog import Launcher
    from vcpo_bench.records.settings import CellSettings


def run(
    ctx: typer.Context,
    methods: flags.Methods = "vcpo,clip,vespo",
    staleness: flags.Staleness = "1,16,128",
    seeds: flags.Seeds = "3",
    task: flags.Tasks = CellFields.task,
    regime: flags.Regimes = CellFields.regime,
    lr: flags.LearningRates = "3e-4",
    optimizer: flags.Optimizer = CellFields.optimizer,
    policy: flags.Policy = CellFields.policy,
    replay: flags.Replay = CellFields.replay,
    weight_decay: flags.WeightDecay = CellFields.weight_decay,
    lr_warmup: flags.LrWarmup = CellFields.lr_warmup,
    steps: flags.Steps = CellFields.steps,
    prompts: flags.Prompts = CellFields.prompts,
    responses: flags.Responses = CellFields.responses,
    record: flags.Record = CellFields.record,
    start: flags.Start = None,
    model: flags.Model = "",
    dtype: flags.Precision = CellFields.dtype,
    lora: flags.LoraRank = CellFields.lora,
    learner: flags.Learner = CellFields.learner,
    sampler: flags.Sampler = CellFields.sampler,
    url: flags.ServerUrl = "",
    max_response: flags.MaxResponse = CellFields.max_response,
    micro_tokens: flags.MicroTokens = CellFields.micro_tokens,
    checkpointing: flags.ActivationCheckpointing = CellFields.checkpointing,
    shards: flags.ShardCount = CellFields.shards,
    chat_template: flags.ChatTemplate = CellFields.chat,
    controls: flags.Controls = True,
    stop_on_alarm: flags.StopOnAlarm = False,
    detector: flags.StopDetector = "",
    out: flags.Out = DEFAULT_OUT,
    device: flags.Device = CellFields.device,
    jobs: Jobs = 0,
    launcher: flags.LauncherName = "local",
    launcher_config: flags.LauncherConfig = None,
    detach: flags.Detach = False,
    stack: flags.Stack = "auto",
    plugin: Plugins = None,
    dry_run: flags.DryRun = False,
    wait: Wait = False,
    keep_checkpoints: flags.KeepCheckpoints = "",
    report_to: flags.ReportTo = "",
    config: flags.Config = "",
    save_config: flags.SaveConfig = None,
    quiet: Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Train every missing cell of a grid, then print the scoreboard.

    A cell is one method, lag, regime, task, learning rate and seed. Stop a run at any time: the same command resumes
    it. On a CPU the results are bit-identical, except in the regime async with its real clock.
    """
    from vcpo_bench.analysis.monitoring import stop_on_alarm as alarms
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.cells import grid
    from vcpo_bench.bench.running import run_grid
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.bench.running.pool.memory import memory_warning
    from vcpo_bench.records.settings import read_settings

    check_folder("--out", out)
    plugins = load_plugins(plugin)
    trackers = read_trackers(report_to)
    place = read_launcher(launcher, launcher_config)
    remember_server(ctx, learner)
    settings = read_settings(ctx.params)
    watched = alarms.stop_detector(detector, settings.record) if stop_on_alarm or detector else None
    spec = _spec(ctx, replace(settings, stop=watched.detector.text) if watched else settings)
    if save_config:
        write_config(ctx, save_config)
    keep_every = options.every(keep_checkpoints) if keep_checkpoints else 0
    if dry_run and spec.model and device != "cpu":
        _show_gpu_plan(spec)
        return
    cells = grid.plan_grid(spec)
    _warn([*spec.warnings(), *_skipped(spec)])
    if watched:
        say_aside(f"cells stop at the first alarm of {watched.detector.text}; {watched.words}")
    workers = run_grid.worker_count(jobs, device, sampler, shards) if place.here else scheduled_count(jobs)
    together = stack_count(stack, device, place)
    crowd = min(workers, len(cells)) if place.here and device == "cpu" else 0
    _warn(filter(None, [memory_warning(crowd, spec.regimes)]))
    if dry_run:
        _show_plan(cells, workers or len(cells), out)
        return
    check_extras(model, lora)
    check_trackers(trackers)
    place.check(device, shards)
    how = RunOptions(out, workers, wait, keep_every, plugins, alarms.StopOnAlarm, together)
    if detach:
        _detach(cells, how, place, trackers)
        return
    starts = [] if quiet or as_json else start_rewards(spec)
    with mirrored(trackers, cells, how, lambda text: _warn([text])) as report:
        failed = _train(cells, how, place, starts, quiet, as_json)
        report(lambda: _write_page(how.out))
    if failed:
        raise typer.Exit(1)


def _spec(ctx: typer.Context, settings: CellSettings) -> GridSpec:
    """The grid of this call's flags."""
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.cells.grid_spec import GridSpec

    given = ctx.params
    return GridSpec(
        methods=options.expressions(given["methods"]),
        staleness=options.lags(given["staleness"]),
        seeds=options.seeds(given["seeds"]),
        tasks=options.expressions(given["task"]),
        lrs=options.rates(given["lr"]),
        regimes=options.expressions(given["regime"]),
        settings=settings,
        controls=given["controls"],
        start=given["start"],
        model=given["model"],
        device=given["device"],
    )


def _skipped(spec: GridSpec) -> list[str]:
    from vcpo_bench.bench.cells.grid import skipped_methods

    skipped = skipped_methods(spec)
    return [f"skipped methods that this grid cannot run: {', '.join(skipped)}"] if skipped else []


def _detach(cells: list[PlannedCell], how: RunOptions, place: Launcher, trackers: list[Tracker]) -> None:
    from vcpo_bench.bench.running.run_grid import detach_grid
    from vcpo_bench.errors import UsageError

    for one in trackers:
        later = f"drop --report-to, and run {one.command(how.out)} later"
        raise UsageError(f"--detach: nothing is left running that could mirror to {one.name}; {later}")
    say(detach_grid(cells, how, say_aside, place))


def _train(
    cells: list[PlannedCell], how: RunOptions, place: Launcher, starts: list[str], quiet: bool, as_json: bool
) -> int:
    """Run the cells, print the scoreboard, and return how many cells failed."""
    from vcpo_bench.bench.running.run_grid import run_grid
    from vcpo_bench.records import CELL_FILE, CELLS
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.plain_console import PlainConsole

    view = make_view(quiet or as_json, PlainConsole(stderr=as_json))
    try:
        for text in starts:
            view.message(text)
        failed = run_grid(cells, how, view, place)
    finally:
        view.close()
    if any((how.out / CELLS).glob(f"*/{CELL_FILE}")):  # none has ended where every job was canceled
        show_scoreboard(how.out, as_json)
        say_what_next(how.out, quiet or as_json)
    return failed


def _write_page(out: Path) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    return write_page([out], out / "report.html")


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        say_aside(f"warning: {text}")


def _show_gpu_plan(spec: GridSpec) -> None:
    from vcpo_bench.bench.machine.gpu_plan import gpu_plan

    say("\n".join(gpu_plan(spec)))


def _show_plan(cells: list[PlannedCell], workers: int, out: Path) -> None:
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.cells.results_folder import ended_keys
    from vcpo_bench.bench.learners.catalog import LEARNERS
    from vcpo_bench.bench.running.pool.time_estimate import estimate

    done = ended_keys(out)
    missing = [cell for cell in cells if cell.key not in done]
    for cell in cells:
        note = "ended" if cell.key in done else "control" if cell.control else ""
        say(f"{cell.config.label:60} {note}".rstrip())
    counts = f"{counted(len(cells), 'cell')}, {len(missing)} to run"
    if any(LEARNERS.parse(cell.config.learner).served for cell in missing):
        counts += f" on {counted(workers, 'worker')}: the server decides how long it takes"
    elif missing:
        minutes = estimate(missing, workers) / 60
        counts += (
            f" on {counted(workers, 'worker')}: about {minutes:.1f} minutes (estimated from updates timed just now)"
        )
    say(counts)


VERB = Verb(
    run,
    Group.TRAIN,
    2,
    examples=(
        "vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128",
        'vcpo-bench run --methods "clip,clip(high=0.28)" --lr 1e-4,3e-4 --dry-run',
        "vcpo-bench run --config quick --out results/quick",
    ),
    resumes=True,
)
