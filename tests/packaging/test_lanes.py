"""Which lanes of .ci/run are due, how they run, and what the real ones cover."""

import importlib.util
import json
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FAILS_ONCE = 'echo "try"; [ -e "$(git rev-parse --show-toplevel)/../tried" ] || { touch ../tried; exit 1; }\n'


@pytest.fixture(scope="module")
def lanes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes", ROOT / ".ci" / "lanes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lanes"] = module  # where its dataclass looks up its annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one covered file and one other."""
    repository = tmp_path / "repository"
    (repository / ".ci" / "integrations.d").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    (repository / "deep" / "er").mkdir(parents=True)
    (repository / "deep" / "er" / "covered.py").write_text("1\n")
    (repository / "other.py").write_text("1\n")
    return repository


def add_lane(repository: Path, name: str, text: str, minutes: float = 1) -> None:
    head = f"#!/usr/bin/env bash\n# minutes: {minutes}\n# covers: deep/*\n"
    (repository / ".ci" / "integrations.d" / f"{name}.sh").write_text(head + text)


def names(due: list) -> list[str]:
    return [lane.name for lane in due]


def test_a_lane_is_due_until_it_passes_and_again_when_a_covered_file_changes(
    lanes: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_lane(checkout, "good", "exit 0\n")
    assert names(lanes.due_lanes(checkout)) == ["good"]
    assert lanes.run_lanes(lanes.due_lanes(checkout), 60) == 0
    assert lanes.due_lanes(checkout) == []
    (checkout / "other.py").write_text("2\n")
    assert lanes.due_lanes(checkout) == []
    (checkout / "deep" / "er" / "covered.py").write_text("2\n")
    assert names(lanes.due_lanes(checkout)) == ["good"]
    assert "good: passed after" in capsys.readouterr().out


@pytest.mark.parametrize("edit", ["new file", "deleted file", "script"])
def test_every_kind_of_change_makes_a_lane_due(lanes: ModuleType, checkout: Path, edit: str) -> None:
    add_lane(checkout, "good", "exit 0\n")
    assert lanes.run_lanes(lanes.due_lanes(checkout), 60) == 0
    if edit == "new file":
        (checkout / "deep" / "new.py").write_text("")
    elif edit == "deleted file":
        (checkout / "deep" / "er" / "covered.py").unlink()
    else:
        add_lane(checkout, "good", "true; exit 0\n")
    assert names(lanes.due_lanes(checkout)) == ["good"]


def test_a_lane_that_fails_once_is_flaky_and_one_that_fails_twice_fails(
    lanes: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_lane(checkout, "shaky", FAILS_ONCE, minutes=2)
    add_lane(checkout, "good", "exit 0\n")
    assert lanes.run_lanes(lanes.due_lanes(checkout), 60) == 0
    assert "shaky: FLAKY, failed beside others and passed alone" in capsys.readouterr().out
    add_lane(checkout, "bad", "echo what went wrong; exit 3\n")
    assert lanes.run_lanes(lanes.due_lanes(checkout), 60) == 1
    assert capsys.readouterr().out.endswith("== bad FAILED; the end of what it printed:\nwhat went wrong\n")
    assert names(lanes.due_lanes(checkout)) == ["bad"]


def test_without_time_lanes_are_named_and_nothing_fails(
    lanes: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_lane(checkout, "long", "exec sleep 600\n", minutes=2)
    add_lane(checkout, "waits", "exec sleep 600\n", minutes=3)
    add_lane(checkout, "good", "exit 0\n", minutes=4)
    monkeypatch.setattr(lanes, "GRACE", 0)
    assert lanes.run_lanes(lanes.due_lanes(checkout), 1) == 0
    printed = capsys.readouterr().out
    assert printed.count("NOT FINISHED, no time was left, after 1 s") == 2
    assert "good: NOT RUN, no time was left" in printed
    assert len(lanes.due_lanes(checkout)) == 3


def test_a_lane_that_hangs_fails(
    lanes: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_lane(checkout, "hangs", "sleep 600 & wait\n")
    monkeypatch.setattr(lanes, "LIMIT", 0.2)
    monkeypatch.setenv("TEST_PATIENCE", "1")
    assert lanes.run_lanes(lanes.due_lanes(checkout), 60) == 1
    assert capsys.readouterr().out.count("hangs: FAILED after 0 s") == 2


def test_short_lanes_come_first(lanes: ModuleType, checkout: Path) -> None:
    for name, minutes in (("a", 1), ("b", 9), ("c", 4)):
        add_lane(checkout, name, "exit 0\n", minutes)
    assert names(lanes.due_lanes(checkout)) == ["a", "c", "b"]


def test_a_real_lane_covers_itself_and_the_tests_it_runs(lanes: ModuleType) -> None:
    for lane in lanes.read_lanes().values():
        covered = lanes.covered_files(lane)
        assert lane.script.relative_to(ROOT).as_posix() in covered
        code = "\n".join(line for line in lane.script.read_text().splitlines() if not line.startswith("#"))
        for pattern in re.findall(r"tests/[^\s:)\"]*\.py", code):
            run = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
            assert run, f"{lane.name}: {pattern} is no file"
            assert run <= set(covered), f"{lane.name} does not cover {sorted(run - set(covered))}"
        dead = [glob for glob in lane.covers if not any(fnmatchcase(name, glob) for name in covered)]
        assert dead == [], f"{lane.name} covers nothing with {dead}"


def test_every_slow_test_is_in_a_lane(lanes: ModuleType) -> None:
    slow = {name.removeprefix("slow_") for name in lanes.read_lanes() if name.startswith("slow_")}
    assert "others" in slow
    assert all((ROOT / "tests" / name).is_dir() for name in slow - {"others"})


def test_what_passed_is_of_lanes_that_exist(lanes: ModuleType) -> None:
    recorded = json.loads((ROOT / ".ci" / "passed.json").read_text())
    assert recorded.keys() <= lanes.read_lanes().keys()
