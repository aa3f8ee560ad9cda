"""`vcpo-bench results check`: every checksum of a results folder verified."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.check import Checked

FAILED = 1


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder.")] = DEFAULT_OUT,
    set_aside: Annotated[
        bool,
        typer.Option(
            "--set-aside", metavar="", help="Move what is damaged away, so that the same run command runs only that."
        ),
    ] = False,
) -> None:
    """Verify every bit of a results folder, and name what is damaged.

    Cells, checkpoints, fork states and tables are compared with the checksums written with them. The exit code is 1 if
    something is damaged or cannot be read; what cannot be read is never moved.
    """
    from vcpo_bench.bench.cells.check import check_folder

    checked = list(check_folder(folder))
    damaged, unread = [entry for entry in checked if entry.damage], [entry for entry in checked if entry.unread]
    for entry in damaged:
        say(entry.damage)
    for entry in unread:
        say(entry.unread)
    say(_summary(checked))
    if damaged and set_aside:
        _set_aside(folder, damaged)
    if damaged or unread:
        raise typer.Exit(FAILED)


def _set_aside(folder: Path, damaged: list[Checked]) -> None:
    from vcpo_bench.bench.cells.check import set_aside
    from vcpo_bench.bench.cells.results_folder import ResultsFolder

    results = ResultsFolder(folder)
    with results.locked(wait=False):
        for entry in damaged:
            if text := set_aside(results, entry):
                say(text)


def _summary(checked: list[Checked]) -> str:
    from vcpo_bench.analysis.wording import counted

    kinds = Counter(entry.kind for entry in checked if entry.kind != "list of cells")
    parts = [counted(count, kind) for kind, count in kinds.items()] or ["no cell"]
    damaged, unread = sum(bool(entry.damage) for entry in checked), sum(bool(entry.unread) for entry in checked)
    bare = sum(not entry.sealed for entry in checked)
    notes = [f"{damaged} damaged" if damaged else "nothing damaged"]
    notes += [f"{unread} not readable, so not verified"] if unread else []
    notes += [f"{bare} with no checksums (an earlier version wrote them)"] if bare else []
    return f"{', '.join(parts)}: {', '.join(notes)}"


VERB = Verb(
    check,
    examples=("vcpo-bench results check results/default", "vcpo-bench results check results/default --set-aside"),
)
