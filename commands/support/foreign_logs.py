"""Options of the verbs that read the logs of other trainers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from vcpo_bench.commands.support.say import say_aside
from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.analysis.logs.run import LoggedRun

FRAMEWORK = typer.Option(
    metavar="NAME", help="Trainer that wrote the log. By default it is found from the names in the log."
)
MAP = typer.Option(
    "--map", metavar="LIST", help="Map our columns to the log's metric names, such as reward=KEY,step=KEY."
)

CALIBRATION = typer.Option(
    metavar="FILE",
    help="Detectors and error rates that vcpo-bench lab calibrate wrote. By default those of the package.",
)


def parse_map(text: str) -> dict[str, str]:
    """`reward=KEY,entropy=KEY` as a dictionary.

    Raises:
        UsageError: An entry is not COLUMN=KEY, or a column stands twice.
    """
    result: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        column, equals, name = entry.partition("=")
        if not (equals and column and name):
            raise UsageError(f"--map {entry}: write COLUMN=KEY, such as reward=score/mean")
        if column.strip() in result:
            raise UsageError(f"--map {column.strip()}: is there twice; keep one")
        result[column.strip()] = name.strip()
    return result


def read_baseline(path: str, framework: str, mapping: dict[str, str]) -> LoggedRun:
    """Read the run to compare with; names mapped for the run itself that it does not have are left out, which is said.

    Raises:
        UsageError: It cannot be read.
    """
    from vcpo_bench.analysis.diagnosis import read_run

    def readable(entries: dict[str, str]) -> bool:
        with suppress(UsageError):
            return bool(read_run(path, framework, entries))
        return False

    there = mapping if readable(mapping) else {one: name for one, name in mapping.items() if readable({one: name})}
    for column, name in mapping.items():
        if column not in there:
            say_aside(f"--baseline {path}: has no {name}; its {column} is what its own names say")
    try:
        return read_run(path, framework, there)
    except UsageError as problem:
        raise UsageError(f"--baseline {path}: {problem}") from problem
