"""What .ci/run has time for: everything on an ordinary machine, and each lane in its turn on a slow one."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


@pytest.fixture(scope="module")
def choose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("choose", ROOT / ".ci" / "choose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_ordinary_machine_runs_every_lane(choose: ModuleType) -> None:
    every = choose.lanes()
    assert len(every) == len(choose.SLOW) + len(list(choose.SCRIPTS.glob("*.sh")))
    taken = choose.chosen(every, seconds=4000, slower=1.0, turn=1)  # 4,800 planned, less what comes before
    assert set(taken) == set(every)
    assert [every[name] for name in taken] == sorted(every.values(), reverse=True)


@pytest.mark.parametrize("slower", [2.0, 4.0])
def test_a_slow_machine_keeps_within_its_time_and_comes_to_everything(choose: ModuleType, slower: float) -> None:
    every = choose.lanes()
    seen: set[str] = set()
    for turn in range(40):
        taken = choose.chosen(every, 3000, slower, turn)
        minutes = [every[name] for name in taken]
        assert sum(minutes) / choose.AT_A_TIME <= choose.longest(minutes) <= 3000 / 60 / slower
        assert all(choose.longest([*minutes, every[name]]) > 3000 / 60 / slower for name in set(every) - set(taken))
        seen |= set(taken)
    assert seen == set(every)


def test_two_lanes_run_at_a_time(choose: ModuleType) -> None:
    assert choose.longest([5.0, 4.0, 3.0, 2.0]) == 7.0
    assert choose.longest([]) == 0.0


def test_every_slow_test_is_in_a_lane(choose: ModuleType) -> None:
    slow = re.compile(r"mark\.slow|marks=pytest\.mark\.slow")
    places = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py") if slow.search(path.read_text())}
    named = set(choose.SLOW) - {"others"}
    assert named <= places, "a lane without a slow test"
    assert places - named, "`others` would be empty"
    assert all((TESTS / name).is_dir() for name in named)
