"""The script .ci/run with stand-ins for what it calls: what it runs, when it fails, and what it does without time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = "#!/usr/bin/env bash\n"
PYTHON = """
if [ "$1" = -m ]; then
    mkdir -p "$3/bin" && cp "$STANDINS"/* "$3/bin/"
elif [ "$1" = .ci/choose.py ]; then
    echo "${@:2}" >"$RECORD/asked" && cat lanes && echo "left: NOT RUN" >&2
fi
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real .ci/run and .ci/integrations, whose stacks and programs are stand-ins."""
    repository, standins = tmp_path / "repository", tmp_path / "standins"
    (repository / ".ci" / "integrations.d").mkdir(parents=True)
    standins.mkdir()
    for name in ("run", "integrations"):
        shutil.copy(ROOT / ".ci" / name, repository / ".ci" / name)
    for name in ("pip", "pytest", "ruff", "mypy"):
        program(standins / name, 'echo "$(basename "$0") $* patience=${TEST_PATIENCE:-}" >>"$RECORD/calls"\n')
    program(standins / "git", "echo 7\n")
    program(standins / "python3", PYTHON)
    program(standins / "python", PYTHON)
    program(repository / ".ci" / "slow", 'echo "slow $1 patience=$TEST_PATIENCE" >>"$RECORD/calls"\n')
    program(repository / ".ci" / "integrations.d" / "good.sh", 'echo good >>"$RECORD/calls"\n')
    program(repository / ".ci" / "integrations.d" / "bad.sh", "echo what went wrong; exit 3\n")
    program(repository / ".ci" / "integrations.d" / "long.sh", "exec sleep 60\n")
    return repository


def program(path: Path, text: str) -> None:
    path.write_text(PROGRAM + text)
    path.chmod(0o755)


def edit(repository: Path, old: str, new: str) -> None:
    path = repository / ".ci" / "run"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def run(repository: Path, lanes: str) -> tuple[int, str, list[str]]:
    """Exit code, what it printed, and the calls of its stand-ins."""
    (repository / "lanes").write_text(lanes)
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


def test_it_runs_the_readmes_line_the_linters_and_the_chosen_lanes(checkout: Path) -> None:
    code, printed, calls = run(checkout, "slow_bench\ngood\n")
    assert code == 0, printed
    assert [call.split(" patience")[0] for call in calls[:5]] == [
        "pip install .[test]",
        "pytest -n auto",
        "ruff check .",
        "ruff format --check .",
        "mypy ",
    ]
    assert set(calls[5:]) == {"slow bench patience=1", "good"}
    assert "slow_bench: passed in" in printed
    assert "left: NOT RUN" in printed
    seconds, slower, turn = (checkout.parent / "asked").read_text().split()
    assert 4700 < int(seconds) <= 4800
    assert float(slower) < 0.1
    assert turn == "7"


def test_a_lane_that_fails_fails_it_and_is_shown_last(checkout: Path) -> None:
    code, printed, calls = run(checkout, "bad\ngood\n")
    assert code == 1
    assert "good" in calls, "the others run all the same"
    assert "bad: FAILED after" in printed
    assert printed.endswith("== bad FAILED; the end of what it printed:\n== integration bad\nwhat went wrong\n")


def test_a_test_that_fails_ends_it(checkout: Path) -> None:
    program(checkout.parent / "standins" / "pytest", 'echo called >>"$RECORD/calls"; exit 1\n')
    code, _, calls = run(checkout, "good\n")
    assert code != 0
    assert calls[-1] == "called"


def test_a_slow_machine_gets_more_patience(checkout: Path) -> None:
    program(checkout.parent / "standins" / "pytest", "sleep 2\n")
    edit(checkout, "ordinary=540 ", "ordinary=1 ")
    code, printed, calls = run(checkout, "slow_bench\n")
    assert code == 0, printed
    patience = int(calls[-1].removeprefix("slow bench patience="))
    slower = float((checkout.parent / "asked").read_text().split()[1])
    assert patience == slower + 1 >= 3


def test_what_has_not_ended_in_time_is_cut_and_said_not_failed(checkout: Path) -> None:
    edit(checkout, "stop=5220 ", "stop=8 ")
    code, printed, calls = run(checkout, "long\nlong\ngood\n")
    assert code == 0, printed
    assert printed.count("long: NOT FINISHED, cut after") == 2
    assert "good: NOT RUN, no time was left" in printed
    assert "good" not in calls
