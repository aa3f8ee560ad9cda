"""The steps of `vcpo-bench run`: read the means, plan the cells, and estimate their time or train them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.commands.support.say import say, say_aside

if TYPE_CHECKING:
    import pandas as pd

    from vcpo_bench.bench.cells.grid import PlannedCell
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.outside.trackers.catalog import Tracker
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.bench.running.schedulers.catalog import Launcher
    from vcpo_bench.commands.support.run_options import ExecutionOptions


@dataclass(frozen=True)
class Means:
    """What a run is carried out with.

    Attributes:
        plugins: Plug-in files, loaded.
        place: Where cells run.
        trackers: What their results are mirrored to.
        keep_every: Updates between two checkpoints that are kept; 0: none is.
    """

    plugins: tuple[Path, ...]
    place: Launcher
    trackers: list[Tracker]
    keep_every: int


@dataclass(frozen=True)
class PlannedRun:
    """A grid that can be trained."""

    spec: GridSpec
    cells: list[PlannedCell]
    options: RunOptions
    means: Means


def read_means(how: ExecutionOptions) -> Means:
    """What the options of execution name.

    Raises:
        UsageError: A value cannot be read, or names what there is not.
    """
    from vcpo_bench.bench.cells.flag_values import every
    from vcpo_bench.commands.support.launching import read_launcher
    from vcpo_bench.commands.support.options import load_plugins
    from vcpo_bench.commands.support.outputs import check_folder
    from vcpo_bench.commands.support.tracking import read_trackers

    check_folder("--out", how.out)
    return Means(
        load_plugins(how.plugin),
        read_launcher(how.launcher, how.launcher_config),
        read_trackers(how.report_to),
        every(how.keep_checkpoints) if how.keep_checkpoints else 0,
    )


def trains_here(spec: GridSpec, how: ExecutionOptions, means: Means) -> bool:
    """Whether the cells of a grid use this machine, so that its cores, GPUs and memory count."""
    return means.place.here and not how.export and not spec.parts.trainer.elsewhere


def plan(spec: GridSpec, how: ExecutionOptions, means: Means) -> PlannedRun:
    """Plan the cells of a grid, and warn of what is probably not meant.

    Raises:
        UsageError: The grid cannot be planned, or not be run in the way that was asked for.
    """
    from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
    from vcpo_bench.bench.cells.grid import plan_grid, skipped_methods
    from vcpo_bench.bench.running.options import RunOptions
    from vcpo_bench.bench.running.pool.memory import memory_warning
    from vcpo_bench.bench.running.run_grid import worker_count
    from vcpo_bench.commands.support.launching import check_stacking, scheduled_count

    cells, device, place = plan_grid(spec), spec.device, means.place
    _warn(spec.warnings())
    if skipped := skipped_methods(spec):
        _warn([f"skipped methods that this grid cannot run: {', '.join(skipped)}"])
    trainer = spec.parts.trainer
    here = trains_here(spec, how, means)
    _warn(_slow_arithmetic(spec) if here else [])
    workers = worker_count(how.jobs, device, spec.parts.sampler) if here else scheduled_count(how.jobs)
    if place.here and not how.jobs:
        workers = max(1, workers // trainer.ranks)
    check_stacking(how.stack, place)
    crowd = min(workers, len(cells)) if here and device == "cpu" else 0
    _warn(filter(None, [memory_warning(crowd, spec.parsed_regimes)]))
    options = RunOptions(how.out, workers, how.wait, means.keep_every, means.plugins, StopOnAlarm, how.stack)
    return PlannedRun(spec, cells, options, means)


def _slow_arithmetic(spec: GridSpec) -> list[str]:
    """A warning where this machine multiplies what the cells ask for much slower than float32."""
    from vcpo_bench.bench.devices import multiplies_bfloat16

    if not spec.model or spec.settings.dtype != "bfloat16" or multiplies_bfloat16(device=spec.device):
        return []
    return ["--dtype bfloat16: this CPU has no instructions for it, so float32 is many times faster"]


def estimate_gpu(spec: GridSpec) -> None:
    """Print what a grid of language models needs on a GPU."""
    from vcpo_bench.bench.machine.gpu_plan import gpu_plan

    say("\n".join(gpu_plan(spec)))


def show_commands(run: PlannedRun) -> None:
    """Print a script that trains every missing cell by hand, each in a folder of its own: its file, and its command."""
    import shlex

    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.cells.results_folder import ended_keys
    from vcpo_bench.bench.running.cell.train_outside import planned_job
    from vcpo_bench.bench.trainers.catalog import OutsideTrainer
    from vcpo_bench.bench.trainers.job import JOB

    done = ended_keys(run.options.out)
    missing = [cell for cell in run.cells if cell.key not in done]
    say(f"# {counted(len(run.cells), 'cell')}, {len(missing)} to run")
    for cell in missing:
        folder = Path(cell.key)
        trainer = cell.config.parts.trainer
        assert isinstance(trainer, OutsideTrainer)
        job = planned_job(cell, run.options.keep_every)
        _, *command = trainer.command(folder / JOB)
        say(f"\n# {cell.config.label}\nmkdir -p {folder}\ncat >{folder / JOB} <<'END'")
        say(f"{job.text()}END\n{shlex.join(['python', *command])}")
        if settings := trainer.configuration(job, folder):
            say("\n".join(["# which runs", *(f"#   {line}" for line in settings)]))


def export(run: PlannedRun) -> None:
    """Write the missing cells of a run into its folder, to be carried to a cluster."""
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.running.export import SCRIPT, export_grid

    out = run.options.out
    written = export_grid(run.cells, run.options, say_aside)
    say(
        f"{counted(written, 'cell')} written to {out}; there, {SCRIPT} N runs one; later: results merge {out} --out ..."
    )


def estimate(run: PlannedRun, listed: bool) -> None:
    """Print how many cells a run has and how long those that are missing take; then the cells, if they are wanted."""
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.cells.results_folder import ended_keys
    from vcpo_bench.bench.running.pool import time_estimate
    from vcpo_bench.reports.formatting import duration

    done = ended_keys(run.options.out)
    missing = [cell for cell in run.cells if cell.key not in done]
    counts = f"{counted(len(run.cells), 'cell')}, {len(missing)} to run"
    workers, parts = run.options.jobs or len(run.cells), list[str]()
    if missing:
        seconds, parts = time_estimate.estimate(missing, workers)
        counts += f" on {counted(workers, 'worker')}: about {duration(seconds)} (estimated from updates timed just now)"
    say("\n".join([counts, *parts]))
    for cell in run.cells if listed else ():
        note = "ended" if cell.key in done else "control" if cell.control else ""
        say(f"{cell.config.label:60} {note}".rstrip())


def train(run: PlannedRun, how: ExecutionOptions) -> int:
    """Train the missing cells of a run, or submit them, and return how many failed.

    Raises:
        UsageError: Something that the run needs is not there.
    """
    from vcpo_bench.commands.support.extras import check_extras
    from vcpo_bench.commands.support.tracking import check_trackers, mirrored

    spec, out = run.spec, run.options.out
    check_extras(spec.model, spec.settings.lora)
    check_trackers(run.means.trackers)
    run.means.place.check(spec.device)
    if how.detach:
        _detach(run)
        return 0
    starts = [] if how.quiet or how.as_json else start_rewards(spec)
    with mirrored(run.means.trackers, run.cells, run.options, lambda text: _warn([text])) as report:
        failed = _train(run, starts, how.quiet, how.as_json)
        report(partial(_write_report, out))
    return failed


def start_rewards(spec: GridSpec) -> list[str]:
    """One line per task with the rewards of its start policy; none for a language model, which each cell evaluates.

    Raises:
        UsageError: A start policy cannot be read.
    """
    if spec.model:
        return []
    from vcpo_bench.bench.policies.warm_start import read_origin
    from vcpo_bench.bench.tasks import token_task

    return [_reward_line(read_origin(token_task(task), spec.start, spec.parts.policy)) for task in spec.tasks]


def _reward_line(origin: Mapping[str, str]) -> str:
    greedy = f", {float(origin['greedy']):.2f} greedy" if "greedy" in origin else ""
    return f"start policy of {origin['task']}: held-out reward {float(origin['reward']):.2f} sampled{greedy}"


def _write_report(out: Path) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    return write_page([out], out / "report.html")


def _detach(run: PlannedRun) -> None:
    from vcpo_bench.bench.running.run_grid import detach_grid
    from vcpo_bench.errors import UsageError

    for tracker in run.means.trackers:
        later = f"drop --report-to, and run {tracker.command(run.options.out)} later"
        raise UsageError(f"--detach: nothing is left running that could mirror to {tracker.name}; {later}")
    say(detach_grid(run.cells, run.options, say_aside, run.means.place))


def _train(run: PlannedRun, starts: list[str], quiet: bool, as_json: bool) -> int:
    """Run the cells, print the scoreboard, and return how many cells failed."""
    from vcpo_bench.bench.running.run_grid import run_grid
    from vcpo_bench.commands.support.next_step import say_what_next
    from vcpo_bench.commands.support.scoreboard import show_scoreboard
    from vcpo_bench.records import CELL_FILE, CELLS
    from vcpo_bench.reports.terminal.live import make_view
    from vcpo_bench.reports.terminal.plain_console import PlainConsole

    out = run.options.out
    view = make_view(quiet or as_json, PlainConsole(stderr=as_json))
    try:
        for text in starts:
            view.message(text)
        failed = run_grid(run.cells, run.options, view, run.means.place)
    finally:
        view.close()
    if any((out / CELLS).glob(f"*/{CELL_FILE}")):  # none has ended where every job was canceled
        shown = show_scoreboard(out, as_json)
        say_what_next(out, *shown, quiet or as_json)
        if failed and (quiet or as_json):  # else the view has said so
            _say_why(run, shown[0].cells)
    return failed


def _say_why(run: PlannedRun, ended: pd.DataFrame) -> None:
    """Print why each cell of a run failed."""
    labels = {cell.key: cell.config.label for cell in run.cells}
    for key, reason in ended.loc[ended["status"] == "error", ["key", "reason"]].itertuples(index=False):
        if key in labels:
            say_aside(f"failed: {labels[key]}: {reason}")


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        say_aside(f"warning: {text}")
