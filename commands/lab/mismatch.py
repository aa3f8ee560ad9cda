"""`vcpo-bench lab mismatch`: which part of a sampler makes it disagree with the trainer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import EXECUTION, LANGUAGE_MODEL, Plugins, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb
from vcpo_bench.records.settings import CellSettings


def mismatch(
    task: Annotated[str, typer.Option(metavar="EXPR", help="Task whose held-out prompts are answered.")] = "walk",
    components: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Components, such as weights(fp16),lag(16), or all; vcpo-bench ls components lists them.",
        ),
    ] = "all",
    length: Annotated[
        str,
        typer.Option(metavar="LIST", help="Lengths in tokens at which the ESS is given.", show_default="the longest"),
    ] = "",
    prompts: Annotated[int, typer.Option(metavar="N", min=2, help="Held-out prompts.")] = 64,
    responses: Annotated[int, typer.Option(metavar="N", min=1, help="Responses per prompt.")] = 8,
    lr: Annotated[float, typer.Option(metavar="X", help="Learning rate of the updates of lag.")] = 3e-4,
    start: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Start policy written by vcpo-bench lab warmup.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Language model: a local folder or a Hugging Face name.",
            rich_help_panel=LANGUAGE_MODEL,
        ),
    ] = "",
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device: cpu or cuda:N.", rich_help_panel=EXECUTION)
    ] = "cpu",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the table as CSV.")] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the table as JSON.")] = False,
    plugin: Plugins = None,
    *,
    settings: Annotated[CellSettings, "policy", "sampler", "max_response"],
) -> None:
    """Attribute the sampler-trainer gap to its components.

    Responses are drawn on the exact path, with each component switched on alone, and with all of them. The trainer
    scores every token. One row each: log-ratio, KL, ratios far from 1, and the ESS of sequence weights at a length.
    """
    from vcpo_bench.bench.cells.flag_values import rates
    from vcpo_bench.bench.cells.grid import plan_grid
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.replay.mismatch import attribute, open_setup
    from vcpo_bench.bench.replay.mismatch.table import lines, read_components, read_lengths, write_csv
    from vcpo_bench.commands.support.outputs import check_file

    load_plugins(plugin)
    check_file("--out", out)
    chosen = read_components(components)
    lengths = read_lengths(length)
    settings = replace(settings, prompts=prompts, responses=responses)
    spec = GridSpec(
        ("reinforce",), (0,), (0,), (task,), tuple(rates(str(lr))), settings=settings, controls=False, start=start,
        model=model, device=device,
    )  # fmt: skip
    config = plan_grid(spec)[0].config
    setup = open_setup(config, spec.start_path, max((component.lag for component in chosen), default=0), device)
    try:
        attribution = attribute(setup, chosen, lengths or [setup.task.max_response])
    finally:
        setup.close()
    if out:
        write_csv(out, attribution)
    if as_json:
        say(json.dumps(attribution.facts(), indent=1))
    else:
        for line in lines(attribution):
            say(line)


VERB = Verb(
    mismatch,
    examples=(
        "vcpo-bench lab mismatch --task walk",
        'vcpo-bench lab mismatch --components "weights(fp16),lag(16)" --json',
        "vcpo-bench lab mismatch --task countdown --model MODEL --sampler vllm",
    ),
)
