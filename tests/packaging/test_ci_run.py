"""The script .ci/run with stand-ins for what it calls: what it runs, and that only what fails twice fails it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = "#!/usr/bin/env bash\n"
CALL = 'echo "$(basename "$0") $*" >>"$RECORD/calls"\n'
MAKES_THE_ENVIRONMENT = 'if [ "$1" = -m ]; then mkdir -p "$3/bin" && cp "$STANDINS"/* "$3/bin/"; fi\n'
RETRY = "pytest -n 0 --last-failed --last-failed-no-failures none"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real .ci/run, whose programs are stand-ins."""
    repository, standins = tmp_path / "repository", tmp_path / "standins"
    (repository / ".ci").mkdir(parents=True)
    standins.mkdir()
    shutil.copy(ROOT / ".ci" / "run", repository / ".ci" / "run")
    for name in ("pip", "pytest", "ruff", "mypy", "python"):
        program(standins / name, CALL)
    program(standins / "python3", MAKES_THE_ENVIRONMENT)
    return repository


def program(path: Path, text: str) -> None:
    path.write_text(PROGRAM + text)
    path.chmod(0o755)


def run(repository: Path) -> tuple[int, str, list[str]]:
    """Exit code, what it printed, and the calls of its stand-ins."""
    folder = repository.parent
    environment = os.environ | {
        "PATH": f"{folder / 'standins'}:{os.environ['PATH']}",
        "STANDINS": str(folder / "standins"),
        "RECORD": str(folder),
    }
    done = subprocess.run(
        ["bash", ".ci/run"],
        cwd=repository,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout, (folder / "calls").read_text().splitlines()


def test_it_runs_the_readmes_line_the_linters_and_the_lanes_that_are_due(checkout: Path) -> None:
    code, printed, calls = run(checkout)
    assert code == 0, printed
    assert calls[:-1] == [
        "pip install .[test]",
        "pytest -n auto",
        "ruff check .",
        "ruff format --check .",
        "mypy ",
    ]
    assert calls[-1].startswith("python .ci/lanes.py run-due --seconds ")
    assert 1400 < int(calls[-1].split()[-1]) <= 1500


@pytest.mark.parametrize(("again", "fails"), [(0, False), (1, True)])
def test_tests_that_fail_run_once_more_alone(checkout: Path, again: int, fails: bool) -> None:
    program(checkout.parent / "standins" / "pytest", CALL + f'[ "$2" = 0 ] && exit {again}; exit 1\n')
    code, printed, calls = run(checkout)
    assert calls[1:3] == ["pytest -n auto", RETRY]
    assert (code != 0) == fails, printed
    assert ("FLAKY" in printed) == (not fails)
    assert (calls[-1] == RETRY) == fails, "nothing runs after a failure that stands"


def test_a_run_that_is_no_matter_of_tests_is_not_repeated(checkout: Path) -> None:
    program(checkout.parent / "standins" / "pytest", CALL + "exit 2\n")
    code, _, calls = run(checkout)
    assert (code, calls[-1]) == (2, "pytest -n auto")


def test_a_linter_that_finds_something_ends_it(checkout: Path) -> None:
    program(checkout.parent / "standins" / "mypy", CALL + "exit 1\n")
    code, _, calls = run(checkout)
    assert (code, calls[-1]) == (1, "mypy ")
