"""Options of the verbs that read the logs of other trainers."""

from __future__ import annotations

import typer

from vcpo_bench.errors import UsageError

FRAMEWORK = typer.Option(
    metavar="NAME", help="Trainer that wrote the log. By default it is found from the names in the log."
)
MAP = typer.Option(
    "--map", metavar="LIST", help="Map our columns to the log's metric names, such as reward=KEY,eval_reward=KEY."
)

CALIBRATION = typer.Option(
    metavar="FILE", help="Detectors and error rates that vcpo-bench calibrate wrote. By default those of the package."
)


def parse_map(text: str) -> dict[str, str]:
    """`reward=KEY,entropy=KEY` as a dictionary.

    Raises:
        UsageError: An entry is not COLUMN=KEY.
    """
    result = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        column, equals, name = entry.partition("=")
        if not (equals and column and name):
            raise UsageError(f"--map {entry}: write COLUMN=KEY, such as reward=score/mean")
        result[column.strip()] = name.strip()
    return result
