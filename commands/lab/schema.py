"""`vcpo-bench lab schema`: what an editor must know to complete and check a configuration file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.outputs import check_file
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb, as_command, load_verb


def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="print it")] = None,
) -> None:
    """Write the JSON Schema of configuration files for run --config.

    Editors that know YAML schemas then complete and check your file: put the line
    "# yaml-language-server: $schema=vcpo-bench.schema.json" at its top.
    """
    from vcpo_bench.commands.support.config_schema import config_schema
    from vcpo_bench.files.atomic import write_text

    check_file("--out", out)
    text = json.dumps(config_schema(as_command("run", load_verb("", "run"))), indent=1)
    if out is None:
        say(text)
        return
    write_text(out, text + "\n", typed=True)
    say(out)


VERB = Verb(schema, examples=("vcpo-bench lab schema", "vcpo-bench lab schema --out vcpo-bench.schema.json"))
