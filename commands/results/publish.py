"""`vcpo-bench results publish`: results as an entry of a static leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb


def publish(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="DIR|FILE", help="Results folders, pooled into one entry; or entries: JSON files."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the site; entries that are there stay.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the entry.", show_default="that of the first folder")
    ] = "",
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the entry.", show_default="its name")] = "",
    by: Annotated[str, typer.Option(metavar="TEXT", help="Who ran it, as the page shows it.")] = "anonymous",
) -> None:
    """Write results to a static leaderboard: one page and its data.

    Any web server or a folder will do. Every entry is checked; entries of different rules stand in tables of their own,
    because their results do not compare.
    """
    from vcpo_bench.analysis.comparison.leaderboard import read_entry
    from vcpo_bench.reports.study import open_study
    from vcpo_bench.reports.writers.leaderboard import entry_of, write_site

    check_folder("--out", out)
    folders = [path for path in sources if path.suffix != ".json"]
    entries = [read_entry(path) for path in sources if path.suffix == ".json"]
    if folders:
        entries.append(entry_of(open_study(folders), name or folders[0].resolve().name, title, by))
    for path in write_site(out, entries):
        say(path)


VERB = Verb(
    publish,
    examples=(
        'vcpo-bench results publish results/sweep --out site --by "A. Student"',
        "vcpo-bench results publish protocol.json --out site",
    ),
)
