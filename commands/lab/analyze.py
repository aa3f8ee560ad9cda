"""`vcpo-bench lab analyze`: findings from recorded runs."""

from __future__ import annotations

from typing import Annotated

import typer

from vcpo_bench.commands.support.findings import Ids, Tables, show_findings
from vcpo_bench.commands.support.options import Folders, Plugins, load_plugins
from vcpo_bench.commands.support.verb import Verb


def analyze(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Analysis, with parameters if it has any, such as compare(replications=500); vcpo-bench ls analyses "
            "lists them.",
        ),
    ],
    folders: Folders = None,
    out: Tables = None,
    ids: Ids = False,
    plugin: Plugins = None,
) -> None:
    """Analyze recorded runs: print the findings, write their tables.

    Every finding is one sentence, with a 95% confidence interval where one can be computed.
    """
    load_plugins(plugin)
    show_findings(kind, folders, out, ids)


VERB = Verb(
    analyze,
    examples=(
        "vcpo-bench lab analyze collapse results/default",
        "vcpo-bench lab analyze prediction results/default --out tables",
    ),
)
