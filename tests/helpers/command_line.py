"""The command line called in this process, and a grid small enough to be trained in seconds."""

from typing import Any

from typer.testing import CliRunner, Result

from vcpo_bench.cli import app
from vcpo_bench.commands.support.verb import GROUPS, Verb, as_command, find_verbs

RUN = ["run", "--methods", "clip", "--staleness", "1", "--seeds", "1", "--steps", "4", "--prompts", "2"]
RUN += ["--responses", "4", "--task", "walk-eos", "--jobs", "1"]
"""One cell and its two controls; without `--out`."""


VERBS: dict[str, Verb] = find_verbs() | {
    f"{group} {name}": verb for group in GROUPS for name, verb in find_verbs(group).items()
}
"""Every verb by what users type, such as `results check`."""


def click_command(verb: str) -> Any:
    """The click command of one of `VERBS`."""
    return as_command(verb.split()[-1], VERBS[verb])


def run_with(**flags: str) -> list[str]:
    """`RUN` with other values of some of its flags: one may be given only once."""
    command = list(RUN)
    for name, value in flags.items():
        command[command.index(f"--{name}") + 1] = value
    return command


def call(*arguments: str) -> Result:
    """What `vcpo-bench ARGUMENTS` prints and exits with."""
    return CliRunner().invoke(app, list(arguments))
