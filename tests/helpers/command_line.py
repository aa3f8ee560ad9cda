"""The command line called in this process, and a grid small enough to be trained in seconds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner, Result

from vcpo_bench.bench.running.cell.run_stack import run_stack
from vcpo_bench.bench.running.cell_job import CellJob
from vcpo_bench.bench.running.schedulers import local
from vcpo_bench.cli import app
from vcpo_bench.commands.support.verb import GROUPS, Verb, as_command, find_verbs
from vcpo_bench.progress import GridObserver

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


def call(*arguments: object) -> Result:
    """What `vcpo-bench ARGUMENTS` prints and exits with."""
    return CliRunner().invoke(app, list(map(str, arguments)))


def refused(*arguments: object) -> str:
    """The one line of an error that ends `vcpo-bench ARGUMENTS` with exit code 2; lines before it are asides."""
    result = call(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    *asides, line = result.stderr.splitlines(keepends=True)
    assert line.startswith("error: "), result.stderr
    assert line.endswith("\n")
    assert len(line) < 1100
    assert not any(aside.startswith(("error", "Traceback")) for aside in asides)
    return line


@contextmanager
def trained_here() -> Iterator[None]:
    """Train cells in this process: a worker takes seconds to start, and leaves the same folder."""

    def run_jobs(jobs: Sequence[CellJob], workers: int, observer: GridObserver) -> int:
        ended: list[str] = []

        def emit(event: str, *details: Any) -> None:
            getattr(observer, event)(*details)
            ended.extend(details[1:2] if event == "ended" else ())

        for job in jobs:
            run_stack(list(job.cells), job.cells_folder, job.keep_every, emit, job.make_observer)
        return ended.count("error")

    with patch.object(local, "run_jobs", run_jobs):
        yield


def call_here(*arguments: str) -> Result:
    """The same as `call`, with cells trained in this process."""
    with trained_here():
        return call(*arguments)
