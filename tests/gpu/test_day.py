"""The GPU day's own machinery: every measurement leaves a file, a failure is a result, and a second call continues."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import day
import kit
import launch
import stages
from stages import Step

FAKES = """
import os, time
import kit

def works(setup, rows=1):
    with (setup.work / "ran").open("a") as file:
        print("works", file=file)
    told = {"offline": os.environ["HF_HUB_OFFLINE"]}
    return told | {"size": setup.pick("large", "small"), "rows": [{"a": 1.0, "b": {"c": 0.25}}] * rows}

def fails(setup):
    with (setup.work / "ran").open("a") as file:
        print("fails", file=file)
    raise ValueError("the driver said no")

def half(setup):
    raise kit.Failed("two is wrong", {"one": 1, "two": 2})

def stops(setup):
    raise kit.Unfinished("out of time", {"so far": 3})

def skips(setup):
    raise kit.Skipped("no such thing here")

def dies(setup):
    setup.keep({"before": 1})
    os.kill(os.getpid(), 11)

def hangs(setup):
    setup.keep({"before": 2})
    time.sleep(600)
"""


@pytest.fixture
def faked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stages of measurements that take no time; each is a process of its own all the same."""
    (tmp_path / "fakes.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names = {1: ("fails", "works"), 2: ("stops", "works"), 3: ("dies", "half", "skips"), 4: ("hangs",)}
    for stage, those in names.items():
        monkeypatch.setitem(stages.STAGES, stage, [Step(name, f"fakes:{name}", 300) for name in those])
    return tmp_path


def call(folder: Path, *more: str, device: str = "cpu") -> int:
    where = ("--out", str(folder / "out"), "--work", str(folder / "work"))
    return day.main([*where, "--device", device, "--tiny", *more])


def records(folder: Path, device: str = "cpu") -> dict[str, Any]:
    found = json.loads((folder / f"out/gpu-day-{device}-tiny.json").read_text())
    return {facts["name"]: facts for facts in found["measurements"]}


def test_a_failure_is_a_result_and_is_tried_again_last(faked: Path) -> None:
    assert [call(faked, "--stage", "1") for _ in range(2)] == [1, 1]
    assert (faked / "work" / "cpu-tiny" / "work" / "ran").read_text().split() == ["fails", "works", "fails"]
    found = records(faked)
    assert found["works"]["status"] == "ok"
    assert found["works"]["result"]["size"] == "small"
    assert found["works"]["result"]["offline"] == "1"
    assert found["works"]["versions"]["torch"] == torch.__version__
    stages.STAGES[1].append(Step("new", "fakes:works", 300, {"rows": 2}))
    assert [step.name for step in day.ledger.in_turn(stages.STAGES[1], 1, place(faked))] == ["new", "fails"]


def place(folder: Path, device: str = "cpu", tiny: bool = True) -> launch.Place:
    return launch.Place.of(device, tiny, folder / "work")


def test_what_is_left_has_an_exit_code_of_its_own_and_keeps_what_is_known(faked: Path) -> None:
    assert call(faked, "--stage", "2") == 3
    assert records(faked)["stops"]["result"] == {"so far": 3}
    assert call(faked / "none", "--stage", "2", "--limit", "0") == 3
    assert records(faked / "none") == {}


@pytest.mark.slow
def test_the_next_measurement_has_a_process_of_its_own(faked: Path) -> None:
    """After an error that lasts until the process ends, the others are measured; what was known is recorded."""
    assert call(faked, "--stage", "3") == 1
    found = records(faked)
    assert found["dies"]["status"] == "failed"
    assert found["dies"]["error"].startswith("the process died")
    assert found["dies"]["result"] == {"before": 1}
    assert found["half"]["result"] == {"one": 1, "two": 2}
    assert found["half"]["error"] == "two is wrong"
    assert found["skips"]["status"] == "skipped"


@pytest.mark.slow
def test_what_hangs_is_stopped(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = place(faked, tiny=False)
    assert launch.measure(Step("hangs", "fakes:hangs", 25.0), 4, full, 300.0) == "failed"
    found = day.ledger.read(day.ledger.path_of(full.folder, 4, "hangs"))
    assert found["error"] == "stopped after 25 s"
    assert found["result"] == {"before": 2}
    monkeypatch.setattr(day, "SHORTEST", 1.0)
    assert call(faked, "--stage", "4", "--limit", "15") == 3
    assert records(faked)["hangs"]["status"] == "unfinished"


def recorded(folder: Path, stage: int, name: str, **facts: Any) -> None:
    """A measurement of an earlier call."""
    facts = {"name": name, "stage": stage, "device": "cpu", "tiny": True} | facts
    day.ledger.write(day.ledger.path_of(place(folder).folder, stage, name), facts)


def test_sizes_and_devices_are_kept_apart(faked: Path) -> None:
    """What is measured tiny on a CPU is not done on a GPU."""
    recorded(faked, 2, "works", status="ok")
    assert [step.name for step in day.ledger.in_turn(stages.STAGES[2], 2, place(faked))] == ["stops"]
    for other in (place(faked, "cuda"), place(faked, tiny=False)):
        assert len(day.ledger.in_turn(stages.STAGES[2], 2, other)) == 2


def test_what_is_measured_is_home_before_the_next_begins(faked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ends the call early finds it."""
    out, seen = faked / "out" / "gpu-day-cpu-tiny.json", list[list[str]]()

    def measure(step: Step, stage: int, *_: object) -> str:
        seen.append(list(records(faked)) if out.exists() else [])
        recorded(faked, stage, step.name, status="ok")
        return "ok"

    monkeypatch.setattr(day, "measure", measure)
    assert call(faked, "--stage", "2") == 0
    assert seen == [[], ["stops"]]


def test_the_summary_is_markdown(faked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = kit.machine() | {"seconds": 3.0}
    recorded(faked, 1, "works", status="ok", result={"rows": [{"a": 1.0, "b": {"c": 0.25}}, {"d": 2}]}, **facts)
    recorded(faked, 1, "fails", status="failed", error="the driver said no", result={"two": 2})
    assert call(faked, "--limit", "0") == 3
    capsys.readouterr()
    assert call(faked, "--summary") == 0
    text = capsys.readouterr().out
    assert "## Stage 1: works" in text
    assert "the numbers mean nothing" in text
    assert "| 1 | c 0.25 |  |" in text
    assert "**failed**: the driver said no" in text
    assert "| two | 2 |" in text


def test_the_import_path_shows_the_checkout_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for _ in range(2):
        found = Path(launch.carried.import_path(tmp_path)["PYTHONPATH"].split(":")[0])
        assert (found / "vcpo_bench/tests/gpu/day.py").samefile(day.__file__)
