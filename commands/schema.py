"""`vcpo-bench schema`: what an editor must know to complete and check a configuration file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.outputs import check_file
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Group, Verb


def schema(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="print it")] = None,
) -> None:
    """Write the JSON Schema of configuration files for run --config.

    Editors that know YAML schemas then complete and check your file: put the line
    "# yaml-language-server: $schema=vcpo-bench.schema.json" at its top.
    """
    from vcpo_bench.commands.support.config_schema import config_schema
    from vcpo_bench.files.atomic import write_text

    check_file("--out", out)
    app = ctx.parent.command if ctx.parent else ctx.command
    text = json.dumps(config_schema(app.commands["run"]), indent=1)  # type: ignore[attr-defined]
    if out is None:
        say(text)
        return
    write_text(out, text + "\n", typed=True)
    say(out)


VERB = Verb(schema, Group.EXTEND, 4, examples=("vcpo-bench schema", "vcpo-bench schema --out vcpo-bench.schema.json"))
