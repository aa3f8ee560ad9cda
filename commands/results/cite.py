"""`vcpo-bench results cite`: BibTeX of the suite and of the methods that were used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.verb import Verb


def cite(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR|METHOD...",
            help="Results folders, for the methods in them, or method expressions.",
            show_default="only this software",
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Print BibTeX of the suite and of every method used.

    A paper has its title, authors and arXiv number. One that is not known here, such as that of a plug-in, has its
    number and no authors. References without a number are comments.
    """
    from vcpo_bench.commands.support.bibtex import papers, software
    from vcpo_bench.errors import UsageError

    load_plugins(plugin)
    methods: list[str] = []
    for target in what or ():
        if "/" in target and "(" not in target and not Path(target).is_dir():
            raise UsageError(f"{target}: there is no such folder")
        methods += _methods_of(Path(target)) if Path(target).is_dir() else [target]
    cited = papers(dict.fromkeys(methods))
    say("\n\n".join([software(), *cited.entries]))
    if cited.by_number:
        say_aside(f"by number only, without title and authors: {', '.join(cited.by_number)}")


def _methods_of(folder: Path) -> list[str]:
    from vcpo_bench.analysis.results import load

    return sorted(load(folder).cells["method"].unique())


VERB = Verb(
    cite,
    examples=("vcpo-bench results cite results/sweep", 'vcpo-bench results cite vcpo "clip(high=0.28)+ess"'),
)
