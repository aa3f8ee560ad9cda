"""`vcpo-bench probe`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.verb import Group, Verb


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


VERB = Verb(probe, Group.READ, 10, examples=())
