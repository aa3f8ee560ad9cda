"""`vcpo-bench lab probe`: how good each method's update is, at checkpoints of a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, RecordedModel, RecordedStart, ReplayDevice, load_plugins
from vcpo_bench.commands.support.outputs import check_file
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb
from vcpo_bench.errors import UsageError


def probe(
    cell: Annotated[Path, typer.Argument(metavar="CELL", help="Folder of an ended cell: results/NAME/cells/KEY.")],
    at: Annotated[
        str, typer.Option(metavar="LIST", help="Checkpoints, as numbers of finished updates, such as 50,150.")
    ],
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Methods to measure; signal-to-noise ratios are relative to the first.",
            show_default="tis, vcpo and its two ablations, vespo, clip, gspo, reinforce",
        ),
    ] = "tis,vcpo(baseline=group),vcpo(ess=off),vcpo,vespo,clip,gspo,reinforce",
    batches: Annotated[
        int, typer.Option(metavar="N", help="Stale batches per checkpoint, sampled from the behavior policy.")
    ] = 64,
    fresh: Annotated[
        int,
        typer.Option(metavar="N", help="On-policy batches per checkpoint, from which the true gradient is estimated."),
    ] = 256,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table to write, .parquet or .csv.",
            show_default="probes/KEY.parquet in the results folder",
        ),
    ] = None,
    start: RecordedStart = None,
    model: RecordedModel = "",
    device: ReplayDevice = "",
    plugin: Plugins = None,
) -> None:
    """Measure bias, variance and signal-to-noise of method updates.

    The run is replayed to each checkpoint, where every method computes its update from the same stale batches.
    """
    from vcpo_bench.bench.cells import flag_values as options
    from vcpo_bench.bench.replay import probe as probing
    from vcpo_bench.bench.replay.recorded_cell import read_cell
    from vcpo_bench.methods import parse_method
    from vcpo_bench.reports.terminal.plain_console import PlainConsole
    from vcpo_bench.reports.terminal.probe_table import probe_tables

    check_file("--out", out)
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise UsageError(f"--out {out}: the name ends with .parquet or .csv, which says what is written")
    load_plugins(plugin)
    recorded = read_cell(cell, start, model, device)
    chosen = {method.canonical: method for method in map(parse_method, options.expressions(methods))}
    spec = probing.ProbeSpec(recorded, options.updates(at), list(chosen.values()), batches, fresh)
    target = probing.run_probe(spec, out, say)
    PlainConsole().print(probe_tables(target))
    say(target)


VERB = Verb(
    probe,
    examples=("vcpo-bench lab probe results/default/cells/KEY --at 50,150 --methods tis,vcpo",),
)
