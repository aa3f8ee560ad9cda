"""Commands about what exists: results to compare, export, trace and judge, and the environment. Wiring only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_OUT = Path("results/default")


def diff(
    first: Annotated[Path, typer.Argument(help="Results folder A.")],
    second: Annotated[Path, typer.Argument(help="Results folder B.")],
    html: Annotated[Path | None, typer.Option(help="Write it as a page instead.")] = None,
) -> None:
    """What changed between two results folders, and which conclusions flip."""
    from vcpo_bench.reports import diff as comparing

    typer.echo(comparing.write_diff(first, second, html) if html else comparing.diff(first, second).text)


def export(
    folder: Annotated[Path, typer.Argument(help="Results folder.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    form: Annotated[str, typer.Option("--as", help="csv, parquet or latex.")] = "csv",
) -> None:
    """Export the results as tables."""
    from vcpo_bench.reports.writers import tables as exporting

    for path in exporting.export(folder, out, form):
        typer.echo(path)


def trace(
    number: Annotated[str, typer.Argument(help="Id of a number in a report.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="The results the report was made from.")] = None,
) -> None:
    """Show the rows behind a number of a report."""
    from vcpo_bench.reports.trace import trace as find

    typer.echo(find(folders or [DEFAULT_OUT], number).text)


def analyze(
    kind: Annotated[str, typer.Argument(help="weights, gradients, collapse, compare or prediction.")],
    folders: Annotated[list[Path] | None, typer.Argument(help="Results folders; several are pooled.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables as CSV.")] = None,
) -> None:
    """Judge recorded results: findings in sentences, tables as CSV."""
    from vcpo_bench.analysis.commands import run as run_analysis

    findings = run_analysis(kind, folders or [DEFAULT_OUT])
    for sentence in findings.text:
        typer.echo(sentence)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in findings.tables.items():
            table.to_csv(out / f"{name}.csv", index=False)
            typer.echo(f"table: {out / name}.csv")
        for name, content in findings.documents.items():
            (out / name).write_text(content, encoding="utf-8")
            typer.echo(f"document: {out / name}")


def probe(
    cell: Annotated[Path, typer.Argument(help="Folder of an ended cell: results/NAME/cells/KEY.")],
    at: Annotated[str, typer.Option(help="Checkpoints: updates done, such as 50,150.")],
    methods: Annotated[str, typer.Option(help="Methods; ratios are to the first.")] = (
        "tis,vcpo(baseline=group),vcpo(ess=off),vcpo,vespo,clip,gspo,reinforce"
    ),
    batches: Annotated[int, typer.Option(help="Batches sampled by the old policy at each checkpoint.")] = 64,
    fresh: Annotated[int, typer.Option(help="Batches sampled on policy, for the true gradient.")] = 256,
    out: Annotated[Path | None, typer.Option(help="Table, .parquet or .csv; default: RESULTS/probes/KEY.")] = None,
    start: Annotated[Path | None, typer.Option(help="Start policy, where the run had one of its own.")] = None,
    model: Annotated[str, typer.Option(help="The language model the run began with, if it did.")] = "",
    device: Annotated[str, typer.Option(help="Which GPU (cuda:N), for a run on one; default: its kind.")] = "",
    plugin: Annotated[list[Path] | None, typer.Option(help="Python file with a method of your own.")] = None,
) -> None:
    """Measure bias, variance and signal-to-noise of every method's update at checkpoints of a recorded run."""
    from rich.console import Console

    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.replay import probe as probing
    from vcpo_bench.bench.replay import replay as recorded
    from vcpo_bench.methods import load_plugin, parse_method
    from vcpo_bench.reports.terminal.probe_table import probe_tables

    for path in plugin or []:
        load_plugin(path)
    found = recorded.read_cell(cell, start, model, device)
    chosen = {method.canonical: method for method in map(parse_method, options.split_top_level(methods))}
    spec = probing.ProbeSpec(found, options.updates(at), list(chosen.values()), batches, fresh)
    target = out or probing.default_path(found)
    probing.run_probe(spec, target, typer.echo)
    Console().print(probe_tables(target))
    typer.echo(target)


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


def wandb(
    folder: Annotated[Path, typer.Argument(help="Results folder.")] = DEFAULT_OUT,
    mode: Annotated[str, typer.Option(help="offline or online.")] = "online",
    project: Annotated[str, typer.Option(help="Project of wandb.")] = "vcpo-bench",
) -> None:
    """Mirror a results folder to wandb: the ended cells that are not there yet, and the report."""
    from vcpo_bench.bench.outside.wandb_mirror.process import mirror_folder
    from vcpo_bench.reports.writers.html import write_page

    count = mirror_folder(folder, mode, project, write_page([folder], folder / "report.html"))
    typer.echo(f"{count} cells mirrored to the wandb project {project} ({mode})")


def evaluate(
    cells: Annotated[list[Path], typer.Argument(help="Folders of ended cells, or results folders.")],
    tasks: Annotated[str, typer.Option(help="Tasks of lm-eval; own: those about the cell's task.")] = "own",
    checkpoint: Annotated[str, typer.Option(help="last, all, or a number of updates.")] = "last",
    limit: Annotated[int | None, typer.Option(help="Documents per task.")] = None,
    tasks_from: Annotated[Path | None, typer.Option(help="Folder with lm-eval tasks of your own.")] = None,
    model: Annotated[str, typer.Option(help="The language model the cells began with, if they did.")] = "",
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N; for language models.")] = "cpu",
) -> None:
    """Score kept checkpoints with lm-eval; reports and exports show the scores."""
    from vcpo_bench.bench.cells.flag_values import split_top_level
    from vcpo_bench.bench.outside.lm_eval.evaluate import Scoring, evaluate_cells

    scoring = Scoring(split_top_level(tasks), limit, tasks_from, model, device)
    for one, scores in evaluate_cells(cells, checkpoint, scoring):
        typer.echo(f"{one.key} after {one.step} updates")
        for score in scores:
            error = "" if score["stderr"] is None else f" +- {score['stderr']:.4f}"
            typer.echo(f"  {score['task']:24} {score['metric']:12} {score['value']:.4f}{error}")


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", help="Run the checks that need a GPU.")] = False,
) -> None:
    """What this environment can do: versions, extras, devices."""
    from vcpo_bench.bench.machine import doctor as examining
    from vcpo_bench.bench.machine.gpu_checks import gpu_checks

    failed = False
    for finding in [*examining.examine(), *(gpu_checks() if gpu else ())]:
        typer.echo(f"{finding.status:8} {finding.name}: {finding.text}")
        failed |= finding.status == "failed"
    if failed:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
    for command in (diff, export, trace, analyze, probe, fork, wandb, doctor):
        app.command()(command)
    app.command(name="eval")(evaluate)
